"""The first dense layer on features as a PyTorch operator: `lff::fourier_dense` and its backward, for wide hidden layers.

Its second half, from the gradient of the hidden units to the weights and positions, is that of the fused operator too.
"""

import math
from typing import Any

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, WIDEST, cover, power_of_2, rows_at_once, split_rows
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

    x, w_r, bias, w_1 = ready(x, w_r, bias, w_1, dtype)
    n, h = len(x), len(w_1)
    out, means = x.new_empty(n, h, dtype=dtype), x.new_empty(n if norm else 0)
    if n:
        block = BLOCKS["dense"]
        busy = cover(programs(x.device), cover(h, block.units))
        rows = rows_at_once("dense", n, busy, units=block.units, dtype=dtype)
        with on(x):
            dense_forward[(cover(n, rows), cover(h, block.units))](
                x, w_r, w_r if bias is None else bias, w_1, b_1.float().contiguous(), out, means, n,
                **sizes(x, w_r, bias, h, norm), EPS=eps,
                ROWS=rows, BLOCK=block.freqs, UNITS=block.units, **block.options(rows),
            )  # fmt: skip
    return out, means


@operator("lff::fourier_dense_backward")
def fourier_dense_backward(
    grad_u: Tensor, grad_mean: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, norm: bool, need_x: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the positions, [N, m] or empty, and of W_1, W_r^T and the bias in a row: outputs must not share memory."""
    x, w_r, bias, w_1 = ready(x, w_r, bias, w_1, grad_u.dtype)
    (n, m), freqs, h = x.shape, len(w_r), len(w_1)
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
    from lff.kernels.dense_kernels import dense_weights

    block, (n, m), freqs, h = BLOCKS["dense_weights"], x.shape, len(w_r), len(w_1)
    columns = cover(freqs, block.freqs)

    def launch(units: int, layers: int, w_1_too: bool, w_r_too: bool) -> Tensor:
        busy = cover(3 * programs(x.device), columns * layers)  # three to a multiprocessor, by their registers
        rows, share, shares = split_rows("dense_weights", n, busy, units=units, dtype=grad_u.dtype)
        part = x.new_empty(shares, w_1_too * h * 2 * freqs + w_r_too * (m + 1) * freqs)
        with on(x):
            dense_weights[(columns, shares, layers)](
                x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean,
                part, part[:, w_1_too * h * 2 * freqs :], n, share, part.shape[1],
                **sizes(x, w_r, bias, h, norm), W_1=w_1_too, W_R=w_r_too,
                ROWS=rows, BLOCK=block.freqs, UNITS=units, PADDED=power_of_2(m + 1),
                **block.options(rows),
            )  # fmt: skip
        return part.sum(0)

    if h <= WIDEST:  # one program holds W_1's gradient for all units, and the sines serve both
        return launch(power_of_2(h, 16), 1, True, True)
    return torch.cat([launch(block.units, cover(h, block.units), True, False), launch(block.units, 1, False, True)])


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

    block, (n, m), h = BLOCKS["dense_positions"], x.shape, len(w_1)
    units = min(block.units, power_of_2(h, 16))
    rows = rows_at_once("dense_positions", n, programs(x.device), units=units, dtype=grad_u.dtype)
    with on(x):
        dense_positions[(cover(n, rows),)](
            x, w_r, w_r if bias is None else bias, w_1, grad_u, grad_mean, out, n,
            **sizes(x, w_r, bias, h, norm),
            ROWS=rows, BLOCK=block.freqs, UNITS=units, PADDED=power_of_2(m), **block.options(rows),
        )  # fmt: skip


def ready(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """As the kernels take them: contiguous, phases in float32, and the weights of a matrix product in its dtype."""
    bias = None if bias is None else bias.float().contiguous()
    return x.float().contiguous(), w_r.float().contiguous(), bias, w_1.to(dtype).contiguous()


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
