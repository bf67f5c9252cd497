"""Pictures of any sizes in one batch: padded below and to the right, with a mask that says where they are."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, Shaped, UInt8
from torch import Tensor

from lff.experiments import devices
from lff.experiments.tasks.detection.boxes import centred
from lff.experiments.tasks.detection.loss import Targets


class Sample(NamedTuple):
    """One picture after augmentation, with boxes as corners in its pixels."""

    pixels: UInt8[Tensor, "3 height width"]
    boxes: Float[Tensor, "n 4"]
    labels: Int64[Tensor, " n"]


class Batch(NamedTuple):
    """Pixels or features, where they are real, and what is to be found."""

    inputs: Shaped[Tensor, "batch channels height width"]
    mask: Bool[Tensor, "batch height width"]
    targets: Targets
    #: Of a map: real cells that none has more of, where that is known.
    room: int | None = None


def collate(samples: Sequence[Sample]) -> Batch:
    """Pads pictures to the tallest and the widest of them."""
    sizes = torch.tensor([sample.pixels.shape[1:] for sample in samples])
    height, width = sizes.amax(0).tolist()
    pixels = torch.zeros(len(samples), 3, height, width, dtype=torch.uint8)
    for place, sample in enumerate(samples):
        pixels[place, :, : sample.pixels.shape[1], : sample.pixels.shape[2]] = sample.pixels
    boxes = [sample.boxes / sizes[i].flip(0).repeat(2) for i, sample in enumerate(samples)]
    return Batch(pixels, masked(sizes, height, width), padded(boxes, [sample.labels for sample in samples]))


def masked(sizes: Int64[Tensor, "batch 2"], height: int, width: int) -> Bool[Tensor, "batch {height} {width}"]:
    """True inside of (height, width) of each."""
    rows = torch.arange(height)[None, :, None] < sizes[:, :1, None]
    return rows & (torch.arange(width)[None, None, :] < sizes[:, 1:, None])


def padded(boxes: Sequence[Float[Tensor, "_ 4"]], labels: Sequence[Int64[Tensor, " _"]], room: int = 1) -> Targets:
    """Targets of corners over the sides of each image, with room for the most that one has, and for `room` at least."""
    counts = [len(each) for each in labels]
    most = max(room, *counts)
    real = torch.arange(most) < torch.tensor(counts)[:, None]
    flat = centred(torch.cat(list(boxes)).float())
    wanted, known = torch.full((len(counts), most, 4), 0.5), torch.zeros(len(counts), most, dtype=torch.int64)
    wanted[real], known[real] = flat, torch.cat(list(labels))
    return Targets(known, wanted, real)


def moved(batch: Batch, device: torch.device) -> Batch:
    """On a device, without waiting for it."""
    targets = Targets(*(devices.moved(each, device) for each in batch.targets))
    return Batch(devices.moved(batch.inputs, device), devices.moved(batch.mask, device), targets, batch.room)


def normalised(
    pixels: UInt8[Tensor, "batch 3 height width"],
    mask: Bool[Tensor, "batch height width"],
    mean: tuple[float, float, float],
    std: tuple[float, float, float],
) -> Float[Tensor, "batch 3 height width"]:
    """As the backbone was trained; padding is zero, the mean colour."""
    shift, factor = (np.array(mean) * 255).tolist(), (1 / (np.array(std) * 255)).tolist()
    channels = [(pixels[:, i].float() - shift[i]) * factor[i] for i in range(3)]
    return torch.stack(channels, dim=1) * mask[:, None]
