"""How alike an encoding makes two positions."""

import copy

import torch
from einops import einsum
from jaxtyping import Float, Num
from torch import Tensor

from lff.encodings.encoding import Encoding


@torch.no_grad()
def similarity(
    encoding: Encoding, positions: Num[Tensor, "*batch coords"], at: Num[Tensor, "k coords"]
) -> Float[Tensor, "k *batch"]:
    """Cosine similarity of the encoding at each of `positions` with those at `at`; 0 where an encoding is all zeros.

    By Eq. 3 that of Fourier features depends on the offset between two positions alone.
    """
    encoding = copy.deepcopy(encoding).eval()  # without dropout, and the caller's own keeps its mode
    return einsum(_unit(encoding(at)), _unit(encoding(positions)), "k d, ... d -> k ...")


def _unit(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, torch.ones_like(length))
