"""The hull of positions: whether those that were never seen lie between those that were."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor


@dataclass(frozen=True)
class Hull:
    """Positions beside the convex hull of others, and all of them in the plane in which these spread most."""

    #: Which of the asked positions lie in the hull of the known ones, in all their coordinates.
    inside: Bool[Tensor, " asked"]
    #: Both in the plane of the known positions' first two principal components.
    known: Float[Tensor, "known 2"]
    asked: Float[Tensor, "asked 2"]
    #: The corners of the known positions' hull in that plane, in order.
    outline: Float[Tensor, "corners 2"]


def hull(known: Num[Tensor, "known m"], asked: Num[Tensor, "asked m"]) -> Hull:
    """Which of `asked` lie in the convex hull of `known`, and a projection of both to look at (the paper's Figure 16).

    Needs scipy. Known positions may lie in a plane or on a line: the hull is then taken there, and what is beside it is outside.

    Args:
        known: positions of training; at least as many different ones as there are coordinates, and one more.
        asked: positions to judge.
    """
    from scipy.spatial import ConvexHull  # type: ignore[import-untyped]

    points, wanted = torch.unique(known.double(), dim=0), asked.double()
    centre = points.mean(0)
    _, values, axes = torch.linalg.svd(points - centre, full_matrices=False)
    rank = int((values > 1e-9 * values.max()).sum()) if len(points) > 1 else 0
    if rank < 2:
        raise ValueError(f"known must hold positions that span a plane at least, got {len(points)} different ones of rank {rank}")
    inner, outer = (points - centre) @ axes[:rank].T, (wanted - centre) @ axes[:rank].T
    slack = 1e-9 * float(values.max())
    planes = torch.from_numpy(ConvexHull(inner.numpy()).equations)
    within = (outer @ planes[:, :-1].T + planes[:, -1] <= slack).all(-1)
    beside = torch.linalg.vector_norm(wanted - centre - outer @ axes[:rank], dim=-1) > slack
    flat = inner[:, :2]
    outline = flat[torch.from_numpy(ConvexHull(flat.numpy()).vertices).long()]
    return Hull(within & ~beside, flat.float(), outer[:, :2].float(), outline.float())
