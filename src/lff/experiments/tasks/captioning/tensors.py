"""Screens as flat tensors on the device, and batches of them: screens are padded to the largest, widgets stand in one row.

Shapes: b screens of a batch, n elements of its largest, t words of a text, k widgets of all its screens, l words of a caption.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor
from torch.nn import functional

from lff.experiments.devices import moved
from lff.experiments.tasks.captioning.screens import Screen
from lff.experiments.tasks.captioning.words import Vocabulary

TABLE = 500  # rows of the tables for places in the tree, as in the public code


class Batch(NamedTuple):
    """What a model sees, and the captions it is to say."""

    types: Int[Tensor, "b n"]
    boxes: Float[Tensor, "b n 4"]
    text: Int[Tensor, "b n t"]
    resource: Int[Tensor, "b n t"]
    clickable: Int[Tensor, "b n"]
    dom: Int[Tensor, "b n 3"]
    there: Bool[Tensor, "b n"]
    #: Where the widgets are among the b * n places.
    at: Int[Tensor, " k"]
    pixels: UInt8[Tensor, "k side side"] | None
    captions: Int[Tensor, "k l"]


class Screens:
    """Screens of one split.

    Args:
        screens: all of them.
        vocabulary: of texts and captions.
        types: that elements may have; 0 is kept for padding.
        pictures: of all targets in order.
        text_length: words of a text that are read.
        caption_length: words of a caption, END included.
    """

    def __init__(
        self,
        screens: Sequence[Screen],
        vocabulary: Vocabulary,
        types: Sequence[str],
        pictures: UInt8[Tensor, "widgets side side"] | None = None,
        *,
        text_length: int,
        caption_length: int,
    ) -> None:
        elements = [element for screen in screens for element in screen.elements]
        targets = [(screen, number) for screen in screens for number in screen.targets]
        kinds = {kind: number for number, kind in enumerate(types, start=1)}
        most = max((len(screen.elements[number].captions) for screen, number in targets), default=1)
        captions = [[vocabulary.caption(c, caption_length) for c in screen.elements[n].captions] for screen, n in targets]
        counts = [len(each) for each in captions]
        filled = [each + [each[0]] * (most - len(each)) for each in captions]
        self.elements = torch.tensor([len(screen.elements) for screen in screens])
        self.widgets = torch.tensor([len(screen.targets) for screen in screens])
        self._first_element, self._first_widget = (sizes.cumsum(0) - sizes for sizes in (self.elements, self.widgets))
        self._place = torch.tensor([number for _, number in targets], dtype=torch.int64)
        self._flat = {
            "types": torch.tensor([kinds[element.type] for element in elements]),
            "boxes": torch.tensor([element.box for element in elements], dtype=torch.uint8),
            "text": torch.tensor([vocabulary.numbers(e.text, text_length) for e in elements], dtype=torch.int32),
            "resource": torch.tensor([vocabulary.numbers(e.resource, text_length) for e in elements], dtype=torch.int32),
            "clickable": torch.tensor([int(element.clickable) for element in elements]),
            "dom": torch.tensor([element.dom for element in elements]).clamp(max=TABLE - 1),
            "captions": torch.tensor(filled, dtype=torch.int32).reshape(len(targets), most, caption_length),
            "counts": torch.tensor(counts, dtype=torch.int64),
        }
        if pictures is not None:
            self._flat["pixels"] = pictures

    def __len__(self) -> int:
        return len(self.elements)

    def batch(
        self, screens: Int[Tensor, " b"], device: torch.device, keys: Int[Tensor, " b"] | None = None, *, even: bool = False
    ) -> Batch:
        """Some screens with all their widgets; of several captions of a widget, that which its screen's key decides.

        Everything that needs the sizes is computed here on the host, so that nothing waits for the device. With `even`, nearly
        all batches of so many screens have the same shapes, which a CUDA graph wants: they are filled up with places where
        nothing is, and with widgets of which nothing is to be said.
        """
        if next(iter(self._flat.values())).device != device:
            self._flat = {name: tensor.to(device) for name, tensor in self._flat.items()}
        sizes, counts = self.elements[screens], self.widgets[screens]
        n = int((self.elements if even else sizes).max())
        places = torch.arange(n)
        there = places < sizes[:, None]
        index = torch.where(there, self._first_element[screens][:, None] + places, 0)
        row = torch.repeat_interleave(torch.arange(len(screens)), counts)
        within = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
        widget = self._first_widget[screens][row] + within
        at = row * n + self._place[widget]
        chance = torch.zeros_like(widget) if keys is None else (keys[row] % 2**31 + 7919 * within)
        said = torch.ones_like(widget)
        if even:
            more = -len(row) % self._room(len(screens))
            at, widget, chance, said = (functional.pad(each, (0, more)) for each in (at, widget, chance, said))
        index, there, at, widget, chance, said = (moved(each, device) for each in (index, there, at, widget, chance, said))
        flat = self._flat
        types, boxes, text, resource, clickable, dom = (
            flat[name][index] for name in ("types", "boxes", "text", "resource", "clickable", "dom")
        )
        hold = there[..., None]
        return Batch(
            types=types * there,
            boxes=(boxes * hold).float(),
            text=(text * hold).long(),
            resource=(resource * hold).long(),
            clickable=clickable * there,
            dom=dom * hold,
            there=there,
            at=at,
            pixels=flat["pixels"][widget] if "pixels" in flat else None,
            captions=flat["captions"][widget, chance % flat["counts"][widget]].long() * said[:, None],
        )

    def _room(self, screens: int) -> int:
        """Widgets that so many screens hardly ever have more of: five standard deviations above the mean, in sixty-fours."""
        counts = self.widgets.double()
        return 64 * math.ceil(float(screens * counts.mean() + 5 * math.sqrt(screens) * counts.std(correction=0)) / 64)
