"""DETR's loss: after the matching, cross-entropy of the classes, L1 and generalised IoU of the boxes, of every decoder layer."""

from typing import NamedTuple

import torch
import torch.distributed
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

from lff.experiments.tasks.detection.boxes import corners, generalised_iou
from lff.experiments.tasks.detection.matching import CLASS, DISTANCE, OVERLAP, assign, costs

NO_OBJECT = 0.1  # weight of the class that most queries are to have


class Targets(NamedTuple):
    """The objects of a batch, and what is none: an image has as many places as the one with the most needs, one at least."""

    labels: Int64[Tensor, "batch objects"]
    #: (centre x, centre y, width, height) over the sides of the image.
    boxes: Float[Tensor, "batch objects 4"]
    real: Bool[Tensor, "batch objects"]


class Loss:
    """The losses of every decoder layer, each with a matching of its own, summed.

    Args:
        compiled: what is done before and after the matching. It wants batches of one shape.
    """

    def __init__(self, *, compiled: bool = False) -> None:
        self._costs = torch.compile(costs, dynamic=False) if compiled else costs
        self._matched = torch.compile(_matched, dynamic=False) if compiled else _matched

    def __call__(
        self,
        logits: Float[Tensor, "layers batch queries classes"],
        boxes: Float[Tensor, "layers batch queries 4"],
        targets: Targets,
    ) -> Float[Tensor, ""]:
        logits, boxes = logits.float(), boxes.float()
        labels, wanted, real = targets
        found = assign(self._costs(logits, boxes, labels, wanted), real)
        total: Tensor = self._matched(logits, boxes, labels, wanted, (found >= 0) & real, found, _objects(real))
        return total


def _matched(
    logits: Float[Tensor, "layers batch queries classes"],
    boxes: Float[Tensor, "layers batch queries 4"],
    labels: Int64[Tensor, "batch objects"],
    wanted: Float[Tensor, "batch objects 4"],
    matched: Bool[Tensor, "layers batch objects"],
    found: Int64[Tensor, "layers batch objects"],
    objects: Float[Tensor, ""],
) -> Float[Tensor, ""]:
    query = found.clamp(min=0)
    layers = len(logits)
    wanted = repeat(wanted, "b t xywh -> l b t xywh", l=layers)
    ours = boxes.gather(2, repeat(query, "l b t -> l b t xywh", xywh=4))
    distance = ((ours - wanted).abs().sum(-1) * matched).sum()
    overlap = ((1 - generalised_iou(corners(ours), corners(wanted))) * matched).sum()
    return CLASS * _classes(logits, labels, query, matched) + (DISTANCE * distance + OVERLAP * overlap) / objects


def _classes(logits: Tensor, labels: Tensor, query: Tensor, matched: Tensor) -> Tensor:
    """Weighted means of the cross-entropy over the queries of a layer, summed over layers; the last class is "no object"."""
    layers, images, queries, outputs = logits.shape
    # What is not matched is written into a column that is cut off again: no query may be overwritten by padding.
    wanted = torch.full((layers, images, queries + 1), outputs - 1, dtype=torch.int64, device=logits.device)
    wanted.scatter_(2, torch.where(matched, query, queries), repeat(labels, "b t -> l b t", l=layers))
    wanted = wanted[..., :queries]
    weights = torch.where(wanted == outputs - 1, NO_OBJECT, 1.0)
    each = functional.cross_entropy(
        rearrange(logits, "l b q c -> l c (b q)"), rearrange(wanted, "l b q -> l (b q)"), reduction="none"
    )
    weights = rearrange(weights, "l b q -> l (b q)")
    return ((each * weights).sum(1) / weights.sum(1)).sum()


def _objects(real: Bool[Tensor, "batch objects"]) -> Float[Tensor, ""]:
    """How many a process has on average, one at least: every object then counts as much, wherever its image is."""
    count = real.sum().float()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(count)
        count = count / torch.distributed.get_world_size()
    return count.clamp(min=1.0)
