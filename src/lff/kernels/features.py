"""Eq. 2 as a PyTorch operator on the kernels: `lff::fourier_features` and its backward.

Shapes: m coordinates, freqs = |F|/2. Gradients are summed in a fixed order, so that two runs agree to the bit.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Num
from torch import Tensor

from lff.kernels.blocks import BLOCKS, cover, power_of_2, rows_at_once, split_rows
from lff.kernels.launch import Launch, remembered
from lff.kernels.operator import operator
from lff.kernels.serving import on, programs, require


def fourier_features(
    x: Num[Tensor, "*batch m"],
    w_r: Float[Tensor, "freqs m"],
    bias: Float[Tensor, " freqs"] | None = None,
    *,
    scale: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "*batch 2*freqs"]:
    """Eq. 2: [cos(x W_r^T + bias) || sin(x W_r^T + bias)] / sqrt(|F|), as `lff.encodings.fourier.fourier_features`.

    Args:
        x: positions, in float32 or what converts to it.
        w_r: frequencies.
        bias: a phase for each of them.
        scale: what cosines and sines are multiplied by, 1 / sqrt(|F|) unless given; plain sines have 1.
        dtype: of the output; phases are float32 in any case.
    """
    require(x, w_r, bias, dtype=dtype)
    rows = x.reshape(-1, x.shape[-1]).float()
    out: Tensor = _features(rows, w_r.float(), None if bias is None else bias.float(), dtype, scale)
    return out.reshape(*x.shape[:-1], out.shape[-1])


@operator("lff::fourier_features")
def _features(x: Tensor, w_r: Tensor, bias: Tensor | None, dtype: torch.dtype, scale: float | None = None) -> Tensor:
    x, s = x.contiguous(), _sizes(x, w_r, bias, scale, dtype)
    out = x.new_empty(s.n, 2 * s.freqs, dtype=dtype)
    if out.numel():
        with on(x):
            _forward_launch(s)(x, *_weights(w_r, bias), out)
    return out


@operator("lff::fourier_features_backward")
def _features_backward(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, scale: float | None, need_x: bool, need_weights: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the positions, [N, m], and of W_r^T and the bias below it, [m + 1, freqs]; one that is not needed is empty."""
    grad, x, s = grad.contiguous(), x.contiguous(), _sizes(x, w_r, bias, scale, grad.dtype)
    grad_x = x.new_empty(s.n if need_x else 0, s.m)
    grad_weights = x.new_zeros(s.m + 1 if need_weights else 0, s.freqs)
    if not grad.numel():
        return grad_x, grad_weights
    with on(x):
        if need_x:
            _positions_launch(s)(x, *_weights(w_r, bias), grad, grad_x)
        if need_weights:
            launch = _weights_launch(s)
            part = x.new_empty(launch.grid[1], s.m + 1, s.freqs)
            launch(x, *_weights(w_r, bias), grad, part)
            grad_weights = part.sum(0)
    return grad_x, grad_weights


class Sizes(NamedTuple):
    """What decides how the kernels are launched."""

    n: int
    m: int
    freqs: int
    biased: bool
    scale: float
    #: Of the output, and of its gradient.
    dtype: torch.dtype
    device: torch.device

    def constants(self) -> dict[str, Any]:
        """What they are compiled for."""
        return {"FREQS": self.freqs, "M": self.m, "BIASED": self.biased, "SCALE": self.scale}


def _sizes(x: Tensor, w_r: Tensor, bias: Tensor | None, scale: float | None, dtype: torch.dtype) -> Sizes:
    (n, m), freqs = x.shape, w_r.shape[0]
    return Sizes(n, m, freqs, bias is not None, 1 / math.sqrt(2 * freqs) if scale is None else scale, dtype, x.device)


def _weights(w_r: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both contiguous; a bias that is not there is never read."""
    w_r = w_r.contiguous()
    return w_r, w_r if bias is None else bias.contiguous()


@remembered
def _forward_launch(s: Sizes) -> Launch:
    from lff.kernels.feature_kernels import features_forward

    block, rows = BLOCKS["features"], rows_at_once("features", s.n, programs(s.device))
    grid = (cover(s.n, rows), cover(s.freqs, block.freqs))
    return Launch(features_forward, grid, s.n, **s.constants(), ROWS=rows, BLOCK=block.freqs, **block.options(rows))


@remembered
def _positions_launch(s: Sizes) -> Launch:
    from lff.kernels.feature_kernels import features_positions

    block, rows = BLOCKS["features_positions"], rows_at_once("features_positions", s.n, programs(s.device))
    return Launch(
        features_positions, (cover(s.n, rows),), s.n,
        **s.constants(), ROWS=rows, BLOCK=block.freqs, PADDED=power_of_2(s.m + 1), **block.options(rows),
    )  # fmt: skip


@remembered
def _weights_launch(s: Sizes) -> Launch:
    from lff.kernels.feature_kernels import features_weights

    block = BLOCKS["features_weights"]
    columns = cover(s.freqs, block.freqs)
    rows, share, shares = split_rows("features_weights", s.n, cover(programs(s.device), columns))
    return Launch(
        features_weights, (columns, shares), s.n, share,
        **s.constants(), ROWS=rows, BLOCK=block.freqs, PADDED=power_of_2(s.m + 1), **block.options(rows),
    )  # fmt: skip


@_features.register_fake
def _(x: Tensor, w_r: Tensor, bias: Tensor | None, dtype: torch.dtype, scale: float | None = None) -> Tensor:
    return x.new_empty(x.shape[0], 2 * w_r.shape[0], dtype=dtype)


@_features_backward.register_fake
def _(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, scale: float | None, need_x: bool, need_weights: bool
) -> tuple[Tensor, Tensor]:
    (n, m), freqs = x.shape, w_r.shape[0]
    return x.new_empty(n if need_x else 0, m), x.new_empty(m + 1 if need_weights else 0, freqs)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None, torch.dtype, float | None], output: Tensor) -> None:
    *tensors, _, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    need_x, need_w_r, need_bias, *_ = ctx.needs_input_grad
    grad_x, grads = _features_backward(grad, *ctx.saved_tensors, ctx.scale, need_x, need_w_r or need_bias)
    return grad_x if need_x else None, grads[:-1].T if need_w_r else None, grads[-1] if need_bias else None, None, None


def refuse(ctx: Any, *grads: Any) -> None:
    """The backward of a backward."""
    raise RuntimeError('the fused kernels are differentiable once; for a second derivative use impl="torch"')


_features.register_autograd(_backward, setup_context=_save)
_features_backward.register_autograd(refuse)
