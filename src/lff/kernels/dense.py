"""The first dense layer on features as a PyTorch operator: `lff::fourier_dense` and its backward, for wide hidden layers.

Its second half, from the gradient of the hidden units to the weights and positions, is that of the fused operator too.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, WIDEST, cover, power_of_2, rows_at_once, split_rows, within
from lff.kernels.features import refuse
from lff.kernels.operator import operator
from lff.kernels.serving import on, programs


@operator("lff::fourier_dense")
def fourier_dense(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, norm: bool, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """W_1 LN_1(r_x) + b_1, [N, H], and the mean of the features, [N], which is empty without LayerNorm.

    LayerNorm has no affine part here, and with it every row of W_1 must have the mean 0.
    """
    from lff.kernels.dense_kernels import dense_forward

    x, w_r, bias = ready(x, w_r, bias)
    w_1 = w_1.to(dtype).contiguous()
    n, h = x.shape[0], w_1.shape[0]
    out, means = x.new_empty(n, h, dtype=dtype), x.new_empty(n if norm else 0)
    if n:
        block = BLOCKS["dense"]
        busy = cover(programs(x.device), cover(h, block.units))
        rows = rows_at_once("dense", n, busy, units=block.units, dtype=dtype)
        with on(x):
            dense_forward[(cover(n, rows), cover(h, block.units))](
                x, w_r, w_r if bias is None else bias, w_1, b_1.float().contiguous(), out, means, n,
                **sizes(x, w_r, bias, h, norm), EPS=eps,
                ROWS=rows, BLOCK=within(block.freqs, w_r.shape[0]), UNITS=block.units, **block.options(rows),
            )  # fmt: skip
    return out, means


@operator("lff::fourier_dense_backward")
def fourier_dense_backward(
    grad_u: Tensor, grad_mean: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, norm: bool, need_x: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the positions, [N, m] or empty, and of W_1, W_r^T and the bias in a row: outputs must not share memory."""
    x, w_r, bias = ready(x, w_r, bias)
    w_1 = w_1.to(grad_u.dtype).contiguous()
    (n, m), freqs, h = x.shape, w_r.shape[0], w_1.shape[0]
    grad_x = x.new_empty(n if need_x else 0, m)
    if not n:
        return grad_x, x.new_zeros(h * 2 * freqs + (m + 1) * freqs)
    operands = (x, w_r, bias, w_1, grad_u.contiguous(), grad_mean, norm)
    if need_x:
        positions_backward(*operands, grad_x)
    return grad_x, weights_backward(*operands)


def weights_backward(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor, norm: bool
) -> Tensor:
    """Gradients of W_1, W_r^T and the bias in a row, from those of u = W_1 r_x and of the features' mean."""
    operands = (x, w_r, bias, w_1, grad_u, grad_mean, norm)
    if w_1.shape[0] <= WIDEST:
        return weight_parts(*operands).sum(0)
    return torch.cat([weight_parts(*operands, w_r_too=False).sum(0), weight_parts(*operands, w_1_too=False).sum(0)])


def weight_parts(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor, norm: bool,
    *, w_1_too: bool = True, w_r_too: bool = True,
) -> Tensor:  # fmt: skip
    """The same for each share of the positions, [shares, ...]. Both kinds at once only where one program can hold all units."""
    from lff.kernels.dense_kernels import dense_weights

    block, (n, m), freqs, h = BLOCKS["dense_weights"], x.shape, w_r.shape[0], w_1.shape[0]
    units = power_of_2(h, 16) if h <= WIDEST else block.units
    layers = cover(h, units) if w_1_too else 1  # one program has all units of W_r's gradient
    width = within(block.freqs, freqs)
    columns = cover(freqs, width)
    busy = cover(3 * programs(x.device), columns * layers)  # three to a multiprocessor, by their registers
    rows, share, shares = split_rows("dense_weights", n, busy, units=units, dtype=grad_u.dtype, freqs=width)
    part = x.new_empty(shares, w_1_too * h * 2 * freqs + w_r_too * (m + 1) * freqs)
    with on(x):
        dense_weights[(columns, shares, layers)](
            x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean,
            part, part[:, w_1_too * h * 2 * freqs :], n, share, part.shape[1],
            **sizes(x, w_r, bias, h, norm), W_1=w_1_too, W_R=w_r_too,
            ROWS=rows, BLOCK=width, UNITS=units, PADDED=power_of_2(m + 1), **block.options(rows),
        )  # fmt: skip
    return part


def split_weights(grads: Tensor, w_r: Tensor, w_1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What lies in a row in the gradients of the weights: that of W_1, of W_r and of its bias."""
    freqs, m = w_r.shape
    grad_w_1, grad_w_r, grad_bias = torch.split(grads, [w_1.numel(), m * freqs, freqs])
    return grad_w_1.reshape(w_1.shape).to(w_1.dtype), grad_w_r.reshape(m, freqs).T.to(w_r.dtype), grad_bias


def positions_backward(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, grad_u: Tensor, grad_mean: Tensor, norm: bool, out: Tensor
) -> None:
    """Writes the gradient of the positions, [N, m]."""
    from lff.kernels.dense_kernels import dense_positions

    block, (n, m), h = BLOCKS["dense_positions"], x.shape, w_1.shape[0]
    units = min(block.units, power_of_2(h, 16))
    rows = rows_at_once("dense_positions", n, programs(x.device), units=units, dtype=grad_u.dtype)
    with on(x):
        dense_positions[(cover(n, rows),)](
            x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean, out, n,
            **sizes(x, w_r, bias, h, norm),
            ROWS=rows, BLOCK=within(block.freqs, w_r.shape[0]), UNITS=units, PADDED=power_of_2(m), **block.options(rows),
        )  # fmt: skip


def ready(x: Tensor, w_r: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """As the kernels take them: contiguous, in float32."""
    return x.float().contiguous(), w_r.float().contiguous(), None if bias is None else bias.float().contiguous()


def sizes(x: Tensor, w_r: Tensor, bias: Tensor | None, h: int, norm: bool) -> dict[str, Any]:
    """What the kernels on hidden units are compiled for."""
    freqs = len(w_r)
    return {"FREQS": freqs, "M": x.shape[1], "H": h, "BIASED": bias is not None, "NORM": norm, "SCALE": 1 / math.sqrt(2 * freqs)}


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


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
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
