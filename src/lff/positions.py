"""Positions: the only place that makes, normalises and rescales coordinates.

A position is a vector of coordinates on the last axis, float32: (row, col) on an image, (top, left, bottom, right) for a box, in
that order everywhere. Units are cells (pixels, patches) unless normalised, when the whole extent is the interval (0, 1).
"""

import math
from collections.abc import Sequence

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from lff import arguments


def grid(
    size: int | Sequence[int],
    *,
    normalize: bool = False,
    first: int | float | None = None,
    device: torch.device | str | None = None,
) -> Float[Tensor, "*size coords"]:
    """The position of every cell of a grid in any number of dimensions: `grid((h, w))` is [h, w, 2], `grid(n)` is [n, 1].

    Args:
        size: cells along every axis.
        normalize: divide by the size, so that a picture keeps its positions when it is resized.
        first: where the first cell lies, in cells. By default 0, or 1/2 when normalising: the cell's centre, so that
            positions lie inside (0, 1) and the grid is symmetric.
        device: where the result is made.
    """
    size = arguments.sizes("size", size)
    first = _first(first, normalize)
    axes = [torch.arange(n, dtype=torch.float32, device=device) + first for n in size]
    if normalize:
        axes = [axis / n for axis, n in zip(axes, size, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)


def grid_from_mask(
    mask: Bool[Tensor, "*batch_size"],
    *,
    dims: int = 2,
    normalize: bool = False,
    first: int | float | None = None,
    eps: float = 0.0,
) -> Float[Tensor, "*batch_size dims"]:
    """The position of every cell of padded images, counted over the valid cells alone, as DETR does it.

    DETR counts from 1 and measures in turns: `2 * math.pi * grid_from_mask(mask, normalize=True, first=1, eps=1e-6)`.

    Args:
        mask: True where an image is, False where it was padded: [..., height, width].
        dims: how many of the mask's last axes are coordinates: 1 for padded sequences, 3 for video.
        normalize: divide by the number of valid cells in the same column or row.
        first: where the first valid cell lies, as in `grid`.
        eps: added to the number that is divided by.
    """
    if mask.dtype != torch.bool or mask.ndim < arguments.whole("dims", dims):
        raise ValueError(f"mask must be a bool tensor with at least dims={dims} axes, got {mask.dtype} {tuple(mask.shape)}")
    first = _first(first, normalize)
    axes = []
    for dim in range(-dims, 0):
        # Padding before the first valid cell is put on that cell, so that a table can be asked for it too.
        counted = mask.cumsum(dim, dtype=torch.float32).clamp_(min=1)
        axis = counted if first == 1 else counted - 1 + first
        axes.append(axis / (counted.narrow(dim, -1, 1) + eps) if normalize else axis)
    return torch.stack(axes, dim=-1)


def _first(first: int | float | None, normalize: bool) -> int | float:
    first = (0.5 if normalize else 0.0) if first is None else first
    if not math.isfinite(first):
        raise ValueError(f"first must be a finite number, got {first!r}")
    return first


def from_xy(points: Num[Tensor, "*batch coords"]) -> Float[Tensor, "*batch coords"]:
    """(x, y) to (row, col), and (x1, y1, x2, y2) to (top, left, bottom, right): every pair is turned round."""
    if points.ndim == 0 or points.shape[-1] % 2:
        raise ValueError(f"points must hold pairs (x, y) on the last axis, got shape {tuple(points.shape)}")
    exact = torch.promote_types(points.dtype, torch.float32)
    return rearrange(rearrange(points.to(exact), "... (n xy) -> ... n xy", xy=2).flip(-1), "... n yx -> ... (n yx)")


def boxes(
    boxes: Num[Tensor, "*batch 4"],
    *,
    format: str = "xyxy",
    size: tuple[int | float, int | float] | Num[Tensor, "... 2"] | None = None,
) -> Float[Tensor, "*batch 4"]:
    """Boxes as (top, left, bottom, right), from any of the usual formats.

    Args:
        boxes: four numbers a box.
        format: "xyxy" (two corners), "xywh" (COCO: a corner and the size) or "cxcywh" (DETR: the centre and the size).
        size: (height, width) of the image, the same for all or one a box, to normalise by; None leaves the units alone.
    """
    arguments.choice("format", format, ("xyxy", "xywh", "cxcywh"))
    if boxes.ndim == 0 or boxes.shape[-1] != 4:
        raise ValueError(f"boxes must have shape [..., 4], got {tuple(boxes.shape)}")
    start, end = rearrange(from_xy(boxes), "... (pair yx) -> pair ... yx", pair=2)
    if format == "xywh":
        end = start + end
    elif format == "cxcywh":
        start, end = start - end / 2, start + end / 2
    arguments.require(
        (start <= end).all(), lambda: f"boxes must end after they start; is their format really {format!r}? got {boxes}"
    )
    if size is not None:
        scale = torch.as_tensor(size, dtype=start.dtype, device=start.device)
        arguments.require((scale > 0).all(), lambda: f"size must be a positive (height, width), got {size}")
        start, end = start / scale, end / scale
    return torch.cat([start, end], dim=-1)


def rescale(
    positions: Num[Tensor, "*batch coords"], size: Sequence[int], to: Sequence[int], *, align: str = "centers"
) -> Float[Tensor, "*batch coords"]:
    """Moves positions on a grid of one size into the extent of another, so that no cell lies outside what was trained.

    An encoding trained on 16x16 and asked for 24x24 is asked beyond its extent by `grid((24, 24))`, and inside it by
    `rescale(grid((24, 24)), (24, 24), (16, 16))`.

    Args:
        positions: in cells of a grid of `size`.
        size: cells along every axis of that grid.
        to: cells along every axis of the grid that was trained.
        align: "centers" keeps places in the picture where they are, so the outermost centres may lie up to half a cell outside of
            the trained centres, as they do when a table is interpolated; "corners" maps the first cell to the first and the last
            to the last.
    """
    arguments.choice("align", align, ("centers", "corners"))
    size, to = arguments.sizes("size", size), arguments.sizes("to", to)
    if not len(size) == len(to) == positions.shape[-1]:
        raise ValueError(f"size and to must have {positions.shape[-1]} axes, as positions do, got {size} and {to}")
    x = positions.to(torch.promote_types(positions.dtype, torch.float32))
    if align == "centers":
        axes = [(x[..., i] + 0.5) * (new / old) - 0.5 for i, (old, new) in enumerate(zip(size, to, strict=True))]
    else:
        axes = [x[..., i] * (new - 1) / max(old - 1, 1) for i, (old, new) in enumerate(zip(size, to, strict=True))]
    return torch.stack(axes, dim=-1)


def cells(positions: Num[Tensor, "*batch coords"], extent: tuple[int, ...]) -> Int[Tensor, "*batch coords"]:
    """The cell of a table that each position names. Never clamps, rounds or wraps: what is no cell of `extent` raises."""
    index = positions.to(torch.int64)
    # Axis by axis with plain numbers: a tensor of limits would be copied to the device at every call.
    inside = [(index[..., i] >= 0) & (index[..., i] < n) for i, n in enumerate(extent)]
    arguments.require(
        torch.stack(inside, dim=-1).logical_and(positions == index).all(),
        lambda: (
            f"positions must be whole numbers from 0 to {[n - 1 for n in extent]} for extent {extent}, "
            f"got values from {rearrange(positions, '... c -> (...) c').amin(0).tolist()} "
            f"to {rearrange(positions, '... c -> (...) c').amax(0).tolist()}"
        ),
    )
    return index


def raster(positions: Num[Tensor, "*batch coords"], extent: tuple[int, ...]) -> Int[Tensor, "*batch 1"]:
    """The number of each position's cell when the cells of `extent` are read row by row."""
    index = cells(positions, extent)
    flat = index[..., :1]
    for i, n in enumerate(extent[1:], start=1):
        flat = flat * n + index[..., i : i + 1]
    return flat
