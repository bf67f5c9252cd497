"""The row "none": no positional encoding, as a module, so that a comparison needs no special case."""

import torch
from jaxtyping import Float, Num
from torch import Tensor

from lff.encodings.encoding import Encoding


class Zero(Encoding):
    """Zeros at every position.

    Args:
        coords: coordinates of a position.
        depth: size of the encoding.
    """

    rms = 0.0

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        return torch.zeros(*positions.shape[:-1], self.depth, dtype=self.like.dtype, device=positions.device)
