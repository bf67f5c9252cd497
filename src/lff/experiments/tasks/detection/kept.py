"""Batches of features that are kept, put together by a thread while the step before waits for the GPU."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from lff.experiments import data
from lff.experiments.data.annotated import Annotated
from lff.experiments.task import Request
from lff.experiments.tasks.detection.augment import DRAWS, chosen
from lff.experiments.tasks.detection.batch import Batch, masked, moved, padded
from lff.experiments.tasks.detection.features import Features

PART = 0.6  # sides of a part over those of the whole, at least
Item = TypeVar("Item")
#: A map, [height, width, channels]; corners of boxes over its sides; their labels.
Part = tuple[np.ndarray, np.ndarray, np.ndarray]


class Kept:
    """Batches of kept features.

    Args:
        pictures: that they are of.
        features: theirs.
        crop: train on parts in half of all cases.
        even: give all batches the shape of the largest map, and room for the most objects, so that one compilation serves; each
            has its own otherwise.
    """

    def __init__(self, pictures: Annotated, features: Features, *, crop: bool, even: bool = False) -> None:
        self._pictures, self._features, self._crop, self._even = pictures, features, crop, even
        maps = -(-features.pixels // features.stride)
        #: Height, width and cells of the largest maps.
        self._most = (*maps.max((0, 1)).tolist(), int(maps.prod(-1).max()))
        self._objects = max(1, int(np.diff(pictures.offsets).max(initial=0))) if even else 1
        sides = np.repeat(pictures.sizes[:, ::-1], np.diff(pictures.offsets), axis=0)
        #: Corners over the sides of the picture.
        self._boxes = pictures.boxes / np.concatenate([sides, sides], axis=1).astype(np.float32)

    def training(self, requests: Iterable[Request], device: torch.device) -> Iterator[Batch]:
        """A size, a mirror image or not, the whole or a part for each picture, as its key decides."""

        def made() -> Iterator[Batch]:
            for request in requests:
                draws = data.uniforms(request.keys, DRAWS)
                yield self._joined([self._drawn(int(i), each) for i, each in zip(request.indices, draws, strict=True)])

        for batch in _ahead(made()):
            yield moved(batch, device)

    def judged(self, parts: Iterable[Tensor], size: int, device: torch.device) -> Iterator[Batch]:
        """Pictures as they are, of each part."""
        which = self._features.sizes.index(size)
        for part in parts:
            maps = [self._features.of(int(i), which, 0) for i in part]
            none = np.empty((0, 4), np.float32), np.empty(0, np.int64)
            yield moved(self._joined([(each, *none) for each in maps]), device)

    def _drawn(self, picture: int, draws: np.ndarray) -> Part:
        features, mine = self._features, slice(*self._pictures.offsets[picture : picture + 2])
        flip = int(draws[0] < 0.5 and features.offsets.shape[2] > 1)
        size = chosen(tuple(range(len(features.sizes))), draws[7])
        boxes, labels = self._boxes[mine], self._pictures.labels[mine]
        if flip:
            boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], axis=1)
        maps = features.of(picture, size, flip)
        if self._crop and draws[1] < 0.5:
            return cut(maps, boxes, labels, features.pixels[picture, size] / features.stride, draws[3:7])
        return maps, boxes, labels

    def _joined(self, samples: list[Part]) -> Batch:
        sizes = torch.tensor([maps.shape[:2] for maps, _, _ in samples])
        own = (*sizes.amax(0).tolist(), int(sizes.prod(1).max()))
        height, width, room = self._most if self._even else own
        joined = np.zeros((len(samples), height, width, samples[0][0].shape[2]), np.int16)
        for place, (maps, _, _) in enumerate(samples):
            joined[place, : maps.shape[0], : maps.shape[1]] = maps
        boxes = [torch.from_numpy(each) for _, each, _ in samples]
        labels = [torch.from_numpy(each) for _, _, each in samples]
        inputs = rearrange(torch.from_numpy(joined).view(torch.bfloat16), "b h w c -> b c h w")
        return Batch(inputs, masked(sizes, height, width), padded(boxes, labels, self._objects), room)


def cut(maps: np.ndarray, boxes: np.ndarray, labels: np.ndarray, extent: np.ndarray, draws: np.ndarray) -> Part:
    """A part of whole cells, and the boxes in it, over its sides.

    Args:
        maps: [height, width, channels] of the whole.
        boxes: corners over the sides of the whole.
        labels: of the boxes.
        extent: height and width of the picture in cells; the last row and column may be cells in part.
        draws: four numbers from [0, 1).
    """
    whole = np.array(maps.shape[:2])
    least = np.maximum(1, np.round(PART * whole)).astype(int)
    side = least + (draws[:2] * (whole - least + 1)).astype(int)
    start = (draws[2:] * (whole - side + 1)).astype(int)
    top_left, bottom_right = start / extent, np.minimum((start + side) / extent, 1.0)
    low, span = np.tile(top_left[::-1], 2), np.tile((bottom_right - top_left)[::-1], 2)
    inside = np.clip((boxes - low) / span, 0.0, 1.0).astype(np.float32)
    real = (inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1])
    part = maps[start[0] : start[0] + side[0], start[1] : start[1] + side[1]]
    return part, inside[real], labels[real]


def _ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Items in order, the next one made by a thread in the meantime."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
