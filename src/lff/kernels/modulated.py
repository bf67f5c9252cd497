"""Algorithm 1 for one group on the kernels: as one operator where the hidden layer is narrow, as two layers where it is wide.

Shapes: m coordinates, freqs = |F|/2, h hidden units, d outputs.
"""

import torch
from jaxtyping import Float, Num
from torch import Tensor
from torch.nn import functional

from lff.kernels.blocks import WIDEST
from lff.kernels.dense import fourier_dense
from lff.kernels.fold import folded
from lff.kernels.mlp import mlp
from lff.kernels.serving import require


def fourier_mlp(
    x: Num[Tensor, "*batch m"],
    w_r: Float[Tensor, "freqs m"],
    bias: Float[Tensor, " freqs"] | None,
    w_1: Float[Tensor, "h 2*freqs"],
    b_1: Float[Tensor, " h"],
    w_2: Float[Tensor, "d h"],
    b_2: Float[Tensor, " d"],
    *,
    norm_1: tuple[Float[Tensor, " 2*freqs"], Float[Tensor, " 2*freqs"]] | None = None,
    norm_2: tuple[Float[Tensor, " h"], Float[Tensor, " h"]] | None = None,
    eps: float = 1e-5,
    dropout: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "*batch d"]:
    """Lines 1 and 2 of Algorithm 1: W_2 drop(LN_2(GELU(W_1 LN_1(r_x) + b_1))) + b_2, with nothing of size N x |F| in memory.

    Args:
        x: positions, in float32 or what converts to it.
        w_r: frequencies.
        bias: a phase for each of them.
        w_1: weights of the first dense layer.
        b_1: its bias.
        w_2: weights of the second.
        b_2: its bias.
        norm_1: weight and bias of the LayerNorm before the first dense layer; both LayerNorms or neither.
        norm_2: weight and bias of the one before the second.
        eps: what both add to the variance.
        dropout: share of hidden units to drop; 0 outside of training.
        dtype: of the output, and of what enters the two matrix products; everything else is float32.
    """
    require(x, w_r, bias, w_1, b_1, w_2, b_2, dtype=dtype)
    if (norm_1 is None) != (norm_2 is None):
        raise ValueError("norm_1 and norm_2 must be given together")
    return unchecked(x, w_r, bias, w_1, b_1, w_2, b_2, norm_1=norm_1, norm_2=norm_2, eps=eps, dropout=dropout, dtype=dtype)


def unchecked(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor, *,
    norm_1: tuple[Tensor, ...] | None, norm_2: tuple[Tensor, ...] | None, eps: float, dropout: float, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """`fourier_mlp` for whoever knows that there is no obstacle."""
    rows = (x if x.ndim == 2 else x.reshape(-1, x.shape[-1])).float()
    if w_1.shape[0] > WIDEST:
        w_1, b_1 = (w_1, b_1) if norm_1 is None else folded(w_1, b_1, *norm_1)
        z = fourier_dense(rows, w_r, bias, w_1, b_1, norm_1 is not None, eps, dtype)
        out = _second_layer(z, w_2, b_2, norm_2, eps, dropout)
    else:
        norms = (None, None, None, None) if norm_1 is None or norm_2 is None else (*norm_1, *norm_2)
        seed = torch.randint(2**31, (1,), device=x.device) if dropout > 0 else None
        out = mlp(rows, w_r, bias, w_1, b_1, w_2, b_2, *norms, seed, eps, dropout, dtype)
    return out if x.ndim == 2 else out.reshape(*x.shape[:-1], out.shape[-1])


def _second_layer(z: Tensor, w_2: Tensor, b_2: Tensor, norm_2: tuple[Tensor, ...] | None, eps: float, dropout: float) -> Tensor:
    h = functional.gelu(z)
    if norm_2 is not None:
        weight, bias = norm_2
        h = functional.layer_norm(h.float(), weight.shape, weight.float(), bias.float(), eps).to(z.dtype)
    h = functional.dropout(h, dropout, training=dropout > 0)
    return functional.linear(h, w_2.to(z.dtype), b_2.to(z.dtype))
