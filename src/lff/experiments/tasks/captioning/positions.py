"""Which positions of a data set were seen in training, and where the others lie."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Int

from lff.analysis.hull import Hull, hull
from lff.experiments.tasks.captioning.screens import Screen

Boxes = Int[np.ndarray, "n 4"]


def of_elements(screens: Iterable[Screen]) -> Boxes:
    """The boxes of all elements."""
    return np.array([element.box for screen in screens for element in screen.elements]).reshape(-1, 4)


def of_targets(screens: Iterable[Screen]) -> Boxes:
    """The boxes of the widgets to caption, in the order of their captions."""
    return np.array([screen.elements[number].box for screen in screens for number in screen.targets]).reshape(-1, 4)


def seen(boxes: Boxes, train: Int[np.ndarray, "m 4"]) -> Bool[np.ndarray, " n"]:
    """Whether a box, all four numbers of it, is that of any element of a training screen: the encoding was asked for it."""
    known = set(map(tuple, train.tolist()))
    return np.array([tuple(box) in known for box in boxes.tolist()], dtype=bool)


def unseen(train: Sequence[Screen], test: Sequence[Screen]) -> tuple[Boxes, Int[np.ndarray, "m 4"], Hull]:
    """The boxes of training, those of test widgets that it does not have, and where the latter lie beside the former."""
    known, asked = of_elements(train), of_targets(test)
    others = asked[~seen(asked, known)]
    return known, others, hull(torch.from_numpy(known), torch.from_numpy(others))


def counts(train: Boxes) -> Int[np.ndarray, "4 100"]:
    """How often each value of each coordinate occurs."""
    return np.stack([np.bincount(train[:, axis], minlength=100) for axis in range(4)])


def summary(train: Sequence[Screen], test: Sequence[Screen]) -> dict[str, int]:
    """The numbers that the paper gives: seen and unseen test widgets, unseen ones in the hull, values that never occur."""
    asked = of_targets(test)
    known, others, found = unseen(train, test)
    return {
        "widgets": len(asked),
        "seen": len(asked) - len(others),
        "unseen": len(others),
        "unseen_in_hull": int(found.inside.sum()),
        "unseen_by_captioned": int((~seen(asked, of_targets(train))).sum()),
        "values_never_seen": int((counts(known) == 0).sum()),
        "values_seen_under_ten_times": int((counts(known) < 10).sum()),
    }
