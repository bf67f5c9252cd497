"""Pictures decoded once and kept in memory."""

from dataclasses import dataclass

from jaxtyping import Int64, UInt8
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Images:
    """Pictures of one size with their labels; `classes[label]` is the name of a label."""

    pixels: UInt8[Tensor, "n channels height width"]
    labels: Int64[Tensor, "n"]
    classes: tuple[str, ...]
