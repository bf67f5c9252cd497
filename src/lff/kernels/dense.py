"""The first dense layer on features as a PyTorch operator: `lff::fourier_dense` and its backward, for wide hidden layers.

Its second half, from the gradient of the hidden units to the weights and positions, is that of the fused operator too.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, WIDEST, cover, power_of_2, rows_at_once, split_rows, within
from lff.kernels.features import refuse
from lff.kernels.launch import Launch, remembered
from lff.kernels.operator import operator
from lff.kernels.serving import on, programs


class Sizes(NamedTuple):
    """What decides how the kernels on hidden units are launched."""

    n: int
    m: int
    freqs: int
    h: int
    biased: bool
    norm: bool
    #: Of what enters the matrix products.
    dtype: torch.dtype
    device: torch.device

    def constants(self) -> dict[str, Any]:
        """What they are compiled for."""
        scale = 1 / math.sqrt(2 * self.freqs)
        return {"FREQS": self.freqs, "M": self.m, "H": self.h, "BIASED": self.biased, "NORM": self.norm, "SCALE": scale}


def sizes(x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, norm: bool, dtype: torch.dtype) -> Sizes:
    """Of these tensors."""
    (n, m), freqs, h = x.shape, w_r.shape[0], w_1.shape[0]
    return Sizes(n, m, freqs, h, bias is not None, norm, dtype, x.device)


@operator("lff::fourier_dense")
def fourier_dense(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, norm: bool, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """W_1 LN_1(r_x) + b_1, [N, H], and the mean of the features, [N], which is empty without LayerNorm.

    LayerNorm has no affine part here, and with it every row of W_1 must have the mean 0.
    """
    x, w_r, bias = ready(x, w_r, bias)
    w_1 = w_1.to(dtype).contiguous()
    s = sizes(x, w_r, bias, w_1, norm, dtype)
    out, means = x.new_empty(s.n, s.h, dtype=dtype), x.new_empty(s.n if norm else 0)
    if s.n:
        with on(x):
            _forward_launch(s, eps)(x, w_r, w_r if bias is None else bias, w_1, b_1.float().contiguous(), out, means)
    return out, means


@remembered
def _forward_launch(s: Sizes, eps: float) -> Launch:
    from lff.kernels.dense_kernels import dense_forward

    block = BLOCKS["dense"]
    layers = cover(s.h, block.units)
    rows = rows_at_once("dense", s.n, cover(programs(s.device), layers), units=block.units, dtype=s.dtype)
    return Launch(
        dense_forward, (cover(s.n, rows), layers), s.n,
        **s.constants(), EPS=eps,
        ROWS=rows, BLOCK=within(block.freqs, s.freqs), UNITS=block.units, **block.options(rows),
    )  # fmt: skip


@operator("lff::fourier_dense_backward")
def fourier_dense_backward(
    grad_u: Tensor, grad_mean: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, norm: bool, need_x: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the positions, [N, m] or empty, and of W_1, W_r^T and the bias in a row: outputs must not share memory."""
    x, w_r, bias = ready(x, w_r, bias)
    w_1 = w_1.to(grad_u.dtype).contiguous()
    s = sizes(x, w_r, bias, w_1, norm, grad_u.dtype)
    grad_x = x.new_empty(s.n if need_x else 0, s.m)
    if not s.n:
        return grad_x, x.new_zeros(s.h * 2 * s.freqs + (s.m + 1) * s.freqs)
    operands = (x, w_r, bias, w_1, grad_u.contiguous(), grad_mean)
    with on(x):
        if need_x:
            positions_backward(s, *operands, grad_x)
        return grad_x, weights_backward(s, *operands)


def weights_backward(
    s: Sizes, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor
) -> Tensor:
    """Gradients of W_1, W_r^T and the bias in a row, from those of u = W_1 r_x and of the features' mean."""
    operands = (x, w_r, bias, w_1, grad_u, grad_mean)
    if s.h <= WIDEST:
        return weight_parts(s, *operands).sum(0)
    return torch.cat([weight_parts(s, *operands, w_r_too=False).sum(0), weight_parts(s, *operands, w_1_too=False).sum(0)])


def weight_parts(
    s: Sizes, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor,
    *, w_1_too: bool = True, w_r_too: bool = True,
) -> Tensor:  # fmt: skip
    """The same for each share of the positions, [shares, ...]. Both kinds at once only where one program can hold all units."""
    launch, shares, size = _weights_launch(s, w_1_too, w_r_too)
    part = x.new_empty(shares, size)
    launch(x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean, part)
    return part


@remembered
def _weights_launch(s: Sizes, w_1_too: bool, w_r_too: bool) -> tuple[Launch, int, int]:
    """With the number of shares and the size of each."""
    from lff.kernels.dense_kernels import dense_weights

    block = BLOCKS["dense_weights"]
    units = power_of_2(s.h, 16) if s.h <= WIDEST else block.units
    layers = cover(s.h, units) if w_1_too else 1  # one program has all units of W_r's gradient
    width = within(block.freqs, s.freqs)
    columns = cover(s.freqs, width)
    busy = cover(3 * programs(s.device), columns * layers)  # three to a multiprocessor, by their registers
    rows, share, shares = split_rows("dense_weights", s.n, busy, units=units, dtype=s.dtype, freqs=width)
    size = w_1_too * s.h * 2 * s.freqs + w_r_too * (s.m + 1) * s.freqs
    launch = Launch(
        dense_weights, (columns, shares, layers), s.n, share, size,
        **s.constants(), W_1=w_1_too, W_R=w_r_too,
        ROWS=rows, BLOCK=width, UNITS=units, PADDED=power_of_2(s.m + 1), **block.options(rows),
    )  # fmt: skip
    return launch, shares, size


def split_weights(grads: Tensor, w_r: Tensor, w_1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What lies in a row in the gradients of the weights: that of W_1, of W_r and of its bias."""
    freqs, m = w_r.shape
    grad_w_1, grad_w_r, grad_bias = torch.split(grads, [w_1.numel(), m * freqs, freqs])
    return grad_w_1.reshape(w_1.shape).to(w_1.dtype), grad_w_r.reshape(m, freqs).T.to(w_r.dtype), grad_bias


def positions_backward(
    s: Sizes, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor, out: Tensor
) -> None:
    """Writes the gradient of the positions, [N, m]."""
    _positions_launch(s)(x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean, out)


@remembered
def _positions_launch(s: Sizes) -> Launch:
    from lff.kernels.dense_kernels import dense_positions

    block = BLOCKS["dense_positions"]
    units = min(block.units, power_of_2(s.h, 16))
    rows = rows_at_once("dense_positions", s.n, programs(s.device), units=units, dtype=s.dtype)
    return Launch(
        dense_positions, (cover(s.n, rows),), s.n,
        **s.constants(),
        ROWS=rows, BLOCK=within(block.freqs, s.freqs), UNITS=units, PADDED=power_of_2(s.m), **block.options(rows),
    )  # fmt: skip


def ready(x: Tensor, w_r: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """As the kernels take them: contiguous, in float32."""
    return x.float().contiguous(), w_r.float().contiguous(), None if bias is None else bias.float().contiguous()


@fourier_dense.register_fake
def _(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, norm: bool, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    n = x.shape[0]
    return x.new_empty(n, w_1.shape[0], dtype=dtype), x.new_empty(n if norm else 0)


@fourier_dense_backward.register_fake
def _(
    grad_u: Tensor, grad_mean: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, norm: bool, need_x: bool
) -> tuple[Tensor, Tensor]:
    n, m = x.shape
    return x.new_empty(n if need_x else 0, m), x.new_empty(w_1.numel() + (m + 1) * w_r.shape[0])


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.norm, ctx.eps, _ = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    x, w_r, bias, w_1, b_1, out, mean = ctx.saved_tensors
    grad_b_1, grad_u, grad_mean = grad.float().sum(0), grad, mean
    if ctx.norm:
        squares = 1 / w_1.shape[1]  # twice the mean square of the features
        rstd = ((squares / 2 - mean.square()).clamp_min(0) + ctx.eps).rsqrt()
        grad_mean = (grad.float() * (out.float() - b_1.float())).sum(1) * mean * rstd.square() * squares
        grad_u = (grad.float() * rstd[:, None]).to(grad.dtype)
    need_x = ctx.needs_input_grad[0]
    grad_x, grads = fourier_dense_backward(grad_u, grad_mean, x, w_r, bias, w_1, ctx.norm, need_x)
    grad_w_1, grad_w_r, grad_bias = split_weights(grads, w_r, w_1)
    return (
        grad_x if need_x else None,
        grad_w_r,
        None if bias is None else grad_bias.to(bias.dtype),
        grad_w_1,
        grad_b_1.to(b_1.dtype),
        *(None, None, None),
    )


fourier_dense.register_autograd(_backward, setup_context=_save)
fourier_dense_backward.register_autograd(refuse)
