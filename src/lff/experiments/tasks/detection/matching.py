"""Which query is to find which object: the assignment of least cost (DETR, Eq. 1), for a whole batch at a time."""

import numpy as np
import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int64
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]
from torch import Tensor

from lff.experiments.devices import moved
from lff.experiments.tasks.detection.boxes import corners, generalised_iou
from lff.kernels import serving

CLASS, DISTANCE, OVERLAP = 1.0, 5.0, 2.0  # DETR's weights, of the costs and of the losses
NOBODY = -1


@torch.no_grad()
def costs(
    logits: Float[Tensor, "layers batch queries classes"],
    boxes: Float[Tensor, "layers batch queries 4"],
    labels: Int64[Tensor, "batch objects"],
    wanted: Float[Tensor, "batch objects 4"],
) -> Float[Tensor, "layers batch queries objects"]:
    """Of every query for every object of its image: class probability, distance of the boxes, generalised IoU."""
    layers, _, queries, _ = logits.shape
    asked = repeat(labels, "b t -> l b q t", l=layers, q=queries)
    likely = logits.softmax(-1).gather(-1, asked)
    ours, theirs = rearrange(boxes, "l b q xywh -> l b q 1 xywh"), rearrange(wanted, "b t xywh -> b 1 t xywh")
    apart = (ours - theirs).abs().sum(-1)
    return DISTANCE * apart - CLASS * likely - OVERLAP * generalised_iou(corners(ours), corners(theirs))


@torch.no_grad()
def assign(
    cost: Float[Tensor, "layers batch queries objects"], real: Bool[Tensor, "batch objects"]
) -> Int64[Tensor, "layers batch objects"]:
    """The query of every object; NOBODY for what is not real, and for some where there are more objects than queries.

    On a GPU by a kernel, so that no step waits; elsewhere by SciPy. A cost that is not finite counts as a large one: the loss
    then says that it is not.

    Args:
        cost: of each image.
        real: which of the objects are no padding.
    """
    cost = torch.nan_to_num(cost.float(), nan=1e6, posinf=1e6, neginf=-1e6)
    if cost.is_cuda and serving.obstacle(cost) is None:
        from lff.experiments.tasks.detection import matching_kernel  # here, since Triton takes a second to import

        return matching_kernel.assign(cost, real)
    there, which = cost.cpu().numpy(), [np.nonzero(each)[0] for each in real.cpu().numpy()]
    found = np.full((*there.shape[:2], there.shape[3]), NOBODY, np.int64)
    for layer in range(there.shape[0]):
        for image, some in enumerate(which):
            if len(some):
                queries, objects = linear_sum_assignment(there[layer, image][:, some])
                found[layer, image, some[objects]] = queries
    return moved(torch.from_numpy(found), cost.device)
