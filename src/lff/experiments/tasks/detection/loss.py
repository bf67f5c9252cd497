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
    """The objects of a batch, padded to the most that an image has, one at least."""

    labels: Int64[Tensor, "batch objects"]
    #: (centre x, centre y, width, height) over the sides of the image.
    boxes: Float[Tensor, "batch objects 4"]
    real: Bool[Tensor, "batch objects"]
    #: How many are real in each image; known to the processor.
    counts: tuple[int, ...]


def loss(
    logits: Float[Tensor, "layers batch queries classes"], boxes: Float[Tensor, "layers batch queries 4"], targets: Targets
) -> Float[Tensor, ""]:
    """Summed over the decoder's layers, each with a matching of its own."""
    logits, boxes = logits.float(), boxes.float()
    found = assign(costs(logits, boxes, targets.labels, targets.boxes), targets.counts)
    matched = (found >= 0) & targets.real
    query = found.clamp(min=0)
    layers = len(logits)
    wanted = repeat(targets.boxes, "b t xywh -> l b t xywh", l=layers)
    ours = boxes.gather(2, repeat(query, "l b t -> l b t xywh", xywh=4))
    distance = ((ours - wanted).abs().sum(-1) * matched).sum()
    overlap = ((1 - generalised_iou(corners(ours), corners(wanted))) * matched).sum()
    classes = _classes(logits, targets, query, matched)
    return CLASS * classes + (DISTANCE * distance + OVERLAP * overlap) / _objects(targets)


def _classes(logits: Tensor, targets: Targets, query: Tensor, matched: Tensor) -> Tensor:
    """Weighted means of the cross-entropy over the queries of a layer, summed over layers; the last class is "no object"."""
    layers, images, queries, outputs = logits.shape
    # What is not matched is written into a column that is cut off again: no query may be overwritten by padding.
    wanted = torch.full((layers, images, queries + 1), outputs - 1, dtype=torch.int64, device=logits.device)
    wanted.scatter_(2, torch.where(matched, query, queries), repeat(targets.labels, "b t -> l b t", l=layers))
    wanted = wanted[..., :queries]
    weights = torch.where(wanted == outputs - 1, NO_OBJECT, 1.0)
    each = functional.cross_entropy(
        rearrange(logits, "l b q c -> l c (b q)"), rearrange(wanted, "l b q -> l (b q)"), reduction="none"
    )
    weights = rearrange(weights, "l b q -> l (b q)")
    return ((each * weights).sum(1) / weights.sum(1)).sum()


def _objects(targets: Targets) -> Tensor:
    """How many a process has on average, one at least: every object then counts as much, wherever its image is."""
    count = targets.real.sum().float()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.all_reduce(count)
        count = count / torch.distributed.get_world_size()
    return count.clamp(min=1.0)
