"""Pictures with boxes around what they show: what detection trains on and is judged by."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int64, UInt8


class Category(NamedTuple):
    """A kind of object; the id is the data set's own, which need not count from 0 or without gaps."""

    id: int
    name: str


class Objects(NamedTuple):
    """What one picture shows: boxes as corners (x1, y1, x2, y2) in pixels, and for each the place of its category."""

    boxes: Float[np.ndarray, "n 4"]
    labels: Int64[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Annotated(ABC):
    """Pictures by their number, of any sizes.

    Boxes to train on are inside their picture and have an area. `truth` is what COCO's evaluation is given: annotations as the
    data set has them, crowds included.
    """

    ids: Int64[np.ndarray, " pictures"]
    #: (height, width) of every picture.
    sizes: Int64[np.ndarray, "pictures 2"]
    categories: tuple[Category, ...]
    #: Of picture i, the boxes from offsets[i] to offsets[i + 1].
    offsets: Int64[np.ndarray, " pictures_and_one"]
    boxes: Float[np.ndarray, "boxes 4"]
    labels: Int64[np.ndarray, " boxes"]
    #: Annotations of COCO's format.
    truth: Sequence[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)

    def objects(self, index: int) -> Objects:
        """What a picture shows."""
        mine = slice(self.offsets[index], self.offsets[index + 1])
        return Objects(self.boxes[mine], self.labels[mine])

    @abstractmethod
    def pixels(self, index: int) -> UInt8[np.ndarray, "3 height width"]:
        """A picture, decoded."""

    @abstractmethod
    def stamp(self) -> str:
        """What decides the pixels, as a text: the same text, the same pixels."""


def joined(objects: Sequence[Objects]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets, boxes and labels of pictures in a row."""
    offsets = np.cumsum([0, *(len(each.labels) for each in objects)])
    boxes = np.concatenate([np.empty((0, 4), np.float32), *(each.boxes for each in objects)]).astype(np.float32)
    labels = np.concatenate([np.empty(0, np.int64), *(each.labels for each in objects)]).astype(np.int64)
    return offsets.astype(np.int64), boxes, labels
