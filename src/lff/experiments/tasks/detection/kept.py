"""Batches of features that are kept: all of them on the device, where a batch is put together by tensors alone.

Nothing of it is the processor's but the numbers of the pictures and what decides their augmentation, so a step can be recorded.
Every batch has the shape of the largest map, and room for the most objects.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lff.experiments import data
from lff.experiments.data.annotated import Annotated
from lff.experiments.devices import moved
from lff.experiments.problems import Problem
from lff.experiments.task import Request
from lff.experiments.tasks.detection.augment import DRAWS
from lff.experiments.tasks.detection.batch import Batch
from lff.experiments.tasks.detection.boxes import centred
from lff.experiments.tasks.detection.features import Features
from lff.experiments.tasks.detection.loss import Targets

PART = 0.6  # sides of a part over those of the whole, at least


class Drawn(NamedTuple):
    """Pictures, and the numbers from [0, 1) that decide what is done to each: what a batch is made of."""

    pictures: Int64[Tensor, " batch"]
    draws: Float[Tensor, "batch draws"]


class Chosen(NamedTuple):
    """Of each picture: which map, and the part of it in whole cells."""

    pictures: Int64[Tensor, " batch"]
    size: Int64[Tensor, " batch"]
    flip: Int64[Tensor, " batch"]
    #: Row and column of its first cell, and its height and width.
    start: Int64[Tensor, "batch 2"]
    side: Int64[Tensor, "batch 2"]


class Kept:
    """Batches of kept features.

    Args:
        pictures: that they are of.
        features: theirs.
        crop: train on parts in half of all cases.
        device: where the batches are wanted, and the features are put.
    """

    def __init__(self, pictures: Annotated, features: Features, *, crop: bool, device: torch.device) -> None:
        self._crop, self._sizes, self._flips, self._stride = crop, features.sizes, features.offsets.shape[2], features.stride
        maps = -(-features.pixels // features.stride)
        self._height, self._width = maps.max((0, 1)).tolist()
        #: Cells that no map has more of.
        self._room = int(maps.prod(-1).max())
        self._cells = torch.from_numpy(_fitting(features.cells, device)).to(device).view(torch.bfloat16)
        self._offsets, self._pixels = (torch.from_numpy(each).to(device) for each in (features.offsets, features.pixels))
        boxes, labels, real = _table(pictures)
        self._boxes, self._labels, self._real = boxes.to(device), labels.to(device), real.to(device)

    def training(self, requests: Iterable[Request], device: torch.device) -> Iterator[Drawn]:
        """What `batch` makes the batches of, on the device."""
        for request in requests:
            draws = torch.from_numpy(data.uniforms(request.keys, DRAWS))
            yield Drawn(moved(request.indices, device), moved(draws, device))

    def batch(self, drawn: Drawn) -> Batch:
        """A size, a mirror image or not, the whole or a part for each picture."""
        pictures, draws = drawn
        flip = (draws[:, 0] < 0.5).long() * (self._flips - 1)
        size = (draws[:, 7] * len(self._sizes)).long()
        whole = self._whole(pictures, size)
        if not self._crop:
            return self._taken(Chosen(pictures, size, flip, torch.zeros_like(whole), whole))
        least = (PART * whole).round().long().clamp(min=1)
        side = torch.where(draws[:, 1:2] < 0.5, least + (draws[:, 3:5] * (whole - least + 1)).long(), whole)
        start = (draws[:, 5:7] * (whole - side + 1)).long()
        return self._taken(Chosen(pictures, size, flip, start, side))

    def judged(self, parts: Iterable[Int64[Tensor, " _"]], size: int, device: torch.device) -> Iterator[Batch]:
        """Pictures as they are, of each part."""
        for part in parts:
            pictures = moved(part, device)
            which = torch.full_like(pictures, self._sizes.index(size))
            whole = self._whole(pictures, which)
            yield self._taken(Chosen(pictures, which, torch.zeros_like(pictures), torch.zeros_like(whole), whole))

    def _whole(self, pictures: Int64[Tensor, " batch"], size: Int64[Tensor, " batch"]) -> Int64[Tensor, "batch 2"]:
        """Height and width of whole maps, in cells."""
        return -(-self._pixels[pictures, size] // self._stride)

    def _taken(self, chosen: Chosen) -> Batch:
        pictures, size, flip, start, side = chosen
        rows = torch.arange(self._height, device=side.device)[None, :, None]
        columns = torch.arange(self._width, device=side.device)[None, None, :]
        tall, wide, top, left = (each[:, None, None] for each in (*side.unbind(1), *start.unbind(1)))
        mask = (rows < tall) & (columns < wide)
        across = self._whole(pictures, size)[:, 1, None, None]
        where = self._offsets[pictures, size, flip][:, None, None] + (top + rows) * across + left + columns
        inputs = self._cells[torch.where(mask, where, 0)] * mask[..., None]
        extent = self._pixels[pictures, size] / self._stride
        return Batch(rearrange(inputs, "b h w c -> b c h w"), mask, self._targets(chosen, extent), self._room)

    def _targets(self, chosen: Chosen, extent: Float[Tensor, "batch 2"]) -> Targets:
        """The boxes in each part, over its sides.

        Args:
            chosen: the parts.
            extent: of the wholes in cells; the last row and column may be parts of some.
        """
        boxes = self._boxes[chosen.pictures]
        x1, y1, x2, y2 = boxes.unbind(-1)
        mirrored = torch.stack([1 - x2, y1, 1 - x1, y2], dim=-1)
        boxes = torch.where(chosen.flip[:, None, None] == 1, mirrored, boxes).double()
        low, high = chosen.start / extent, ((chosen.start + chosen.side) / extent).clamp(max=1.0)
        low, span = (repeat(each.flip(-1), "b xy -> b 1 (two xy)", two=2) for each in (low, high - low))
        inside = ((boxes - low) / span).clamp(0.0, 1.0).float()
        real = self._real[chosen.pictures] & (inside[..., 2:] > inside[..., :2]).all(-1)
        nothing = torch.full_like(inside, 0.5)
        return Targets(self._labels[chosen.pictures], torch.where(real[..., None], centred(inside), nothing), real)


def _fitting(cells: np.ndarray, device: torch.device) -> np.ndarray:
    """The cells, if a GPU has room for them beside the model."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if 1.5 * cells.nbytes > free:
            raise Problem(
                f"kept features take {cells.nbytes / 2**30:.1f} GiB of the GPU's memory, of which {free / 2**30:.1f} are free: "
                "name fewer --sizes, start fewer --workers, or leave --frozen out"
            )
    return cells


def _table(
    pictures: Annotated,
) -> tuple[Float[Tensor, "pictures objects 4"], Int64[Tensor, "pictures objects"], Bool[Tensor, "pictures objects"]]:
    """Corners over the sides of each picture, labels, and which of them are objects."""
    counts = np.diff(pictures.offsets)
    owner = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(owner)) - pictures.offsets[owner]
    sides = pictures.sizes[owner, ::-1].astype(np.float32)
    most = max(1, int(counts.max(initial=0)))
    boxes, labels = np.zeros((len(counts), most, 4), np.float32), np.zeros((len(counts), most), np.int64)
    boxes[owner, place], labels[owner, place] = pictures.boxes / np.concatenate([sides, sides], axis=1), pictures.labels
    return torch.from_numpy(boxes), torch.from_numpy(labels), torch.from_numpy(np.arange(most) < counts[:, None])
