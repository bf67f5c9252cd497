"""Which positions of a data set were seen in training, and where the others lie."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import optimize, spatial  # type: ignore[import-untyped]

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


def inside(points: Int[np.ndarray, "n d"], cloud: Int[np.ndarray, "m d"]) -> Bool[np.ndarray, " n"]:
    """Whether points lie in the convex hull of a cloud, its surface included.

    By the half-spaces of the hull's facets; a cloud that is flat has none, and each point is then a linear programme.
    """
    cloud = np.unique(cloud, axis=0).astype(np.float64)
    try:
        facets = spatial.ConvexHull(cloud).equations
    except (spatial.QhullError, ValueError):
        return np.array([_mixture(point, cloud) for point in points.astype(np.float64)], dtype=bool)
    return np.array([bool((facets[:, :-1] @ point + facets[:, -1] <= 1e-7).all()) for point in points], dtype=bool)


def _mixture(point: Float[np.ndarray, " d"], cloud: Float[np.ndarray, "m d"]) -> bool:
    """Whether a point is a mean of the cloud's points with weights that are not negative."""
    equal = np.vstack([cloud.T, np.ones(len(cloud))])
    found = optimize.linprog(np.zeros(len(cloud)), A_eq=equal, b_eq=np.append(point, 1.0), bounds=(0, None))
    return bool(found.status == 0)


def plane(
    cloud: Int[np.ndarray, "m d"], points: Int[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, "m 2"], Float[np.ndarray, "n 2"]]:
    """Both in the plane of the two largest principal components of the cloud."""
    middle = cloud.mean(0)
    _, _, axes = np.linalg.svd(cloud - middle, full_matrices=False)
    return (cloud - middle) @ axes[:2].T, (points - middle) @ axes[:2].T


def counts(train: Boxes) -> Int[np.ndarray, "4 100"]:
    """How often each value of each coordinate occurs."""
    return np.stack([np.bincount(train[:, axis], minlength=100) for axis in range(4)])


def summary(train: Sequence[Screen], test: Sequence[Screen]) -> dict[str, int]:
    """The numbers that the paper gives: seen and unseen test widgets, unseen ones in the hull, values that never occur."""
    known, asked = of_elements(train), of_targets(test)
    told = seen(asked, known)
    never = counts(known) == 0
    return {
        "widgets": len(asked),
        "seen": int(told.sum()),
        "unseen": int((~told).sum()),
        "unseen_in_hull": int(inside(asked[~told], known).sum()),
        "unseen_by_captioned": int((~seen(asked, of_targets(train))).sum()),
        "values_never_seen": int(never.sum()),
        "values_seen_under_ten_times": int((counts(known) < 10).sum()),
    }
