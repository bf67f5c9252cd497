"""Boxes as DETR predicts them, (centre x, centre y, width, height) over the sides of the image, and what two have in common."""

import torch
from jaxtyping import Float
from torch import Tensor


def corners(boxes: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """(centre x, centre y, width, height) to (x1, y1, x2, y2)."""
    centre, size = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centre - size / 2, centre + size / 2], dim=-1)


def centred(boxes: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """(x1, y1, x2, y2) to (centre x, centre y, width, height)."""
    start, end = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(start + end) / 2, end - start], dim=-1)


def generalised_iou(a: Float[Tensor, "*#batch 4"], b: Float[Tensor, "*#batch 4"]) -> Float[Tensor, "*batch"]:
    """Intersection over union, less the share of the smallest box around both that neither fills (Rezatofighi et al., 2019).

    Of corners; 1 where two boxes are the same, towards -1 the farther they are apart. Boxes may have no area.
    """
    shared = _area(torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:]))
    union = _area(a[..., :2], a[..., 2:]) + _area(b[..., :2], b[..., 2:]) - shared
    around = _area(torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:]))
    tiny = torch.finfo(union.dtype).tiny
    return shared / union.clamp(min=tiny) - (around - union) / around.clamp(min=tiny)


def _area(start: Tensor, end: Tensor) -> Tensor:
    side = (end - start).clamp(min=0)
    return side[..., 0] * side[..., 1]
