"""Scenes made of the embedded garments: several at known boxes on one canvas, drawn from a seed."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from lff.experiments.data import embedded
from lff.experiments.data.annotated import Annotated, Category, Objects, joined
from lff.experiments.data.embedded import CLASSES

SIDE = 64  # of the canvas
GARMENTS = (16, 28)  # sides of a garment, from and to
MOST = 4  # garments on a canvas
COVERED = 0.2  # of a garment at most, by others


@dataclass(frozen=True, eq=False)
class Scenes(Annotated):
    """Grey scenes in three channels, painted when asked for."""

    #: Of every box, the number of its garment.
    garments: np.ndarray
    pictures: np.ndarray
    seed: int

    def pixels(self, index: int) -> UInt8[np.ndarray, "3 height width"]:
        canvas = np.zeros((SIDE, SIDE), np.uint8)
        mine = slice(self.offsets[index], self.offsets[index + 1])
        for box, garment in zip(self.boxes[mine].astype(int), self.garments[mine], strict=True):
            left, top, right, bottom = box
            painted = Image.fromarray(self.pictures[garment]).resize((right - left, bottom - top), Image.Resampling.BILINEAR)
            place = canvas[top:bottom, left:right]
            np.maximum(place, np.asarray(painted), out=place)
        return np.broadcast_to(canvas, (3, SIDE, SIDE)).copy()

    def stamp(self) -> str:
        return f"scenes {self.seed} {len(self)}"


def scenes(split: str, count: int, seed: int = 0) -> Scenes:
    """A number of scenes with garments of "train" or "test", the same for the same seed."""
    images = embedded(split)
    pictures, labels = images.pixels[:, 0].numpy(), images.labels.numpy()
    generator = np.random.default_rng([seed, split == "train"])
    objects, garments = [], []
    for _ in range(count):
        boxes = _places(generator)
        drawn = generator.integers(len(labels), size=len(boxes))
        objects.append(Objects(boxes, labels[drawn]))
        garments.append(drawn)
    offsets, boxes, found = joined(objects)
    categories = tuple(Category(place + 1, name) for place, name in enumerate(CLASSES))
    owner = np.repeat(np.arange(count), np.diff(offsets))
    truth = [
        {"image_id": int(i), "category_id": int(label) + 1, "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1)}
        | {"iscrowd": 0}
        for i, label, (x1, y1, x2, y2) in zip(owner, found, boxes.tolist(), strict=True)
    ]
    sizes = np.full((count, 2), SIDE, np.int64)
    return Scenes(np.arange(count), sizes, categories, offsets, boxes, found, truth, np.concatenate(garments), pictures, seed)


def _places(generator: np.random.Generator) -> np.ndarray:
    """Boxes of one to four garments that hardly cover each other."""
    boxes: list[np.ndarray] = []
    for _ in range(int(generator.integers(1, MOST + 1))):
        height, width = generator.integers(GARMENTS[0], GARMENTS[1] + 1, size=2)
        top, left = generator.integers(SIDE - height + 1), generator.integers(SIDE - width + 1)
        box = np.array([left, top, left + width, top + height], np.float32)
        if all(_overlap(box, other) < COVERED for other in boxes):
            boxes.append(box)
    return np.stack(boxes)


def _overlap(a: np.ndarray, b: np.ndarray) -> float:
    """What two boxes share, over the smaller of them."""
    width, height = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None)
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return float(width * height / smaller)
