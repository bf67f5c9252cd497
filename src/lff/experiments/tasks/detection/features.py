"""Features of a frozen backbone, computed once for every picture, size and mirror image, and kept in a file.

The file is mapped into memory, so that processes on one machine share it.
"""

import hashlib
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments import data
from lff.experiments.claims import claim
from lff.experiments.data.annotated import Annotated
from lff.experiments.folder import writing
from lff.experiments.task import Request
from lff.experiments.tasks.detection.augment import fitted
from lff.experiments.tasks.detection.backbones import KINDS
from lff.experiments.tasks.detection.batch import Batch, moved, normalised
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.pictures import Resized

CHUNK = 64  # pictures that pass through the backbone at a time


@dataclass(frozen=True, eq=False)
class Features:
    """Of pictures at some sizes, as they are and mirrored: cells in rows, one picture after the other."""

    #: bfloat16, as 16-bit integers, which is what NumPy can map into memory.
    cells: np.ndarray
    #: By picture, size and mirror image, where its cells begin.
    offsets: Int64[np.ndarray, "pictures sizes flips"]
    #: (height, width) in pixels, by picture and size.
    pixels: Int64[np.ndarray, "pictures sizes 2"]
    sizes: tuple[int, ...]
    stride: int


class Wanted(NamedTuple):
    """Which features, and where each will be in the file."""

    pictures: Annotated
    sizes: tuple[int, ...]
    #: 2 where mirror images are wanted too.
    flips: int
    pixels: np.ndarray
    offsets: np.ndarray
    total: int


def wanted(pictures: Annotated, sizes: tuple[int, ...], flips: int, config: DetectionConfig) -> Wanted:
    """The places of all features, before any is computed."""
    pixels = np.array([[fitted(h, w, size, config.longest) for size in sizes] for h, w in pictures.sizes.tolist()], np.int64)
    counts = np.repeat((-(-pixels // config.stride)).prod(-1)[..., None], flips, axis=-1)
    ends = counts.cumsum()
    offsets = (ends.reshape(counts.shape) - counts).astype(np.int64)
    return Wanted(pictures, sizes, flips, pixels, offsets, int(ends[-1]))


def kept(
    asked: Wanted, config: DetectionConfig, weights: str | None, backbone: Callable[[], nn.Module], device: torch.device
) -> Features:
    """The features of pictures, from the file where they are kept, which one process makes while others wait.

    Args:
        asked: which.
        config: of the backbone.
        weights: what tells the backbone's weights from others.
        backbone: makes it, where features are not there yet.
        device: where it is to run.
    """
    about = (lff.__version__, asked.pictures.stamp(), asked.sizes, asked.flips, config.longest)
    which = (config.backbone, config.stride, config.tail, KINDS[config.backbone], weights)
    name = hashlib.sha256(repr((*about, *which)).encode()).hexdigest()[:32]
    file = Path.home() / ".cache" / "lff" / f"features-{name}.npy"
    while not file.exists():
        with claim(file.with_suffix(".claim")) as mine:
            if mine and not file.exists():
                _make(file, asked, config, backbone().to(device).eval(), device)
        if not mine:
            time.sleep(1.0)
    cells = np.asarray(np.load(file, mmap_mode="c", allow_pickle=False))  # of private pages: torch warns of read-only ones
    return Features(cells, asked.offsets, asked.pixels, asked.sizes, config.stride)


@torch.no_grad()
def _make(file: Path, asked: Wanted, config: DetectionConfig, backbone: nn.Module, device: torch.device) -> None:
    """Writes all features beside the file, then gives them its name."""
    part = file.with_suffix(f".{uuid.uuid4().hex}.part")
    groups = list(_groups(asked, config.stride))
    requests = [Request(torch.from_numpy(group.numbers), torch.full((len(group.numbers),), group.how)) for group in groups]
    batches = data.batches(Resized(asked.pictures, config.longest), requests, config.loaders, pin_memory=device.type == "cuda")
    try:
        with writing(file):
            cells = np.lib.format.open_memmap(part, "w+", np.int16, (asked.total, KINDS[config.backbone].channels))
            for done, (group, batch) in enumerate(zip(groups, batches, strict=True), 1):
                maps = features_of(backbone, moved(batch, device), config)
                found = rearrange(maps, "b c h w -> b (h w) c").to(torch.bfloat16).view(torch.int16).cpu().numpy()
                for number, one in zip(group.numbers, found, strict=True):
                    start = asked.offsets[number, group.size, group.flip]
                    cells[start : start + len(one)] = one
                if 10 * done // len(groups) > 10 * (done - 1) // len(groups):  # a line, not a bar: the run may show one already
                    print(f"{100 * done // len(groups)} % of the features of {len(asked.pictures):,} pictures", file=sys.stderr)
            cells.flush()
            os.replace(part, file)
    finally:
        batches.close()  # type: ignore[attr-defined]
        part.unlink(missing_ok=True)


class Group(NamedTuple):
    """Pictures whose maps have one size: what a cell is does then not depend on what else is in the batch."""

    numbers: np.ndarray
    #: The place of the size, whether mirrored, and both as `Resized` is asked.
    size: int
    flip: int
    how: int


def _groups(asked: Wanted, stride: int) -> Iterator[Group]:
    maps = -(-asked.pixels // stride)
    for place, size in enumerate(asked.sizes):
        for shape in np.unique(maps[:, place], axis=0):
            numbers = np.nonzero((maps[:, place] == shape).all(-1))[0]
            for start in range(0, len(numbers), CHUNK):
                for flip in range(asked.flips):
                    yield Group(numbers[start : start + CHUNK], place, flip, 2 * size + flip)


def features_of(backbone: nn.Module, batch: Batch, config: DetectionConfig) -> Tensor:
    """The maps of a batch, which is padded to whole cells."""
    kind, stride = KINDS[config.backbone], config.stride
    below, right = (-side % stride for side in batch.inputs.shape[-2:])
    mask = functional.pad(batch.mask, (0, right, 0, below))
    pixels = normalised(functional.pad(batch.inputs, (0, right, 0, below)), mask, kind.mean, kind.std)
    # A GPU has quick kernels for convolutions of single channels in float32 only where channels are planes.
    layout = torch.contiguous_format if pixels.is_cuda else torch.channels_last
    maps: Tensor = backbone(pixels.to(memory_format=layout), mask)[-1][0]
    return maps
