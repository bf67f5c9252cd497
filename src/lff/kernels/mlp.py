"""Algorithm 1 for one group as a PyTorch operator on the kernels: `lff::fourier_mlp` and its backward.

Shapes: m coordinates, freqs = |F|/2, h hidden units, d outputs. Gradients are summed in a fixed order, so that two runs agree to
the bit.
"""

from typing import Any

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, cover, power_of_2, rows_at_once, split_rows
from lff.kernels.dense import positions_backward, ready, sizes, split_weights, weights_backward
from lff.kernels.features import refuse
from lff.kernels.fold import fold, fold_grads, second_ready
from lff.kernels.operator import operator
from lff.kernels.serving import on, programs


@operator("lff::fourier_mlp")
def mlp(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """With LayerNorm where its weights and shifts are there."""
    from lff.kernels.modulated_kernels import mlp_forward

    w_1, b_1 = fold(w_1, b_1, weight_1, shift_1, dtype)
    x, w_r, bias, w_1 = ready(x, w_r, bias, w_1, dtype)
    n, h, d, block, norm = len(x), len(w_1), len(w_2), BLOCKS["mlp"], weight_2 is not None
    out = x.new_empty(n, d, dtype=dtype)
    if n:
        units = power_of_2(h, 16)
        rows = rows_at_once("mlp", n, programs(x.device), units=units, dtype=dtype)
        with on(x):
            mlp_forward[(cover(n, rows),)](
                x, w_r, w_r if bias is None else bias, w_1, b_1, *second_ready(w_2, b_2, dtype),
                *_or(w_r, weight_2, shift_2), w_r if seed is None else seed, out, n,
                **sizes(x, w_r, bias, h, norm), D=d, EPS=eps, DROPOUT=dropout,
                ROWS=rows, BLOCK=block.freqs, UNITS=units, DEPTH=block.depth, **block.options(rows),
            )  # fmt: skip
    return out


@operator("lff::fourier_mlp_backward")
def mlp_backward(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of the positions, [N, m] or empty, and four rows of others: outputs must not share memory.

    They are of W_1, W_r^T and bias; of W_2 and b_2; of b_1, weight_2 and shift_2; and with LayerNorm, where the first is of the
    folded W_1, of W_1, weight_1 and shift_1.
    """
    w, b_1 = fold(w_1, b_1, weight_1, shift_1, grad.dtype)
    x, w_r, bias, w = ready(x, w_r, bias, w, grad.dtype)
    (n, m), freqs, h, norm = x.shape, len(w_r), len(w_1), weight_2 is not None
    grad_x = x.new_empty(n if need_x else 0, m)
    if not n:
        first, second, hidden, affine = _grad_sizes(w_r, w_1, w_2, norm)
        return grad_x, x.new_zeros(first), x.new_zeros(second), x.new_zeros(hidden), x.new_zeros(affine)
    grad = grad.contiguous()
    p, grad_u, grad_mean, grads_h = _rows_backward(grad, x, w_r, bias, w, b_1, w_2, weight_2, shift_2, seed, eps, dropout)
    grads_2 = _second_backward(p, grad)
    del p
    operands = (x, w_r, bias, w, grad_u, grad_mean, norm)
    if need_x:
        positions_backward(*operands, grad_x)
    grads_1, grads_norm = weights_backward(*operands), x.new_empty(0)
    if weight_1 is not None and shift_1 is not None:
        grad_w = grads_1[: h * 2 * freqs].reshape(h, 2 * freqs)
        grads_norm = fold_grads(grad_w, grads_h[:h], w_1, weight_1, shift_1)
    return grad_x, grads_1, grads_2, grads_h, grads_norm


def _rows_backward(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor,
    weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None, eps: float, dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """What W_2 multiplied, [N, H]; gradients of u = W_1 r_x, of the features' mean, and of b_1, weight_2 and shift_2 in a row."""
    from lff.kernels.modulated_kernels import mlp_rows

    n, h, d, block, norm = len(x), len(w_1), len(w_2), BLOCKS["mlp_rows"], weight_2 is not None
    units = power_of_2(h, 16)
    rows = rows_at_once("mlp_rows", n, programs(x.device), units=units, dtype=grad.dtype)
    part = x.new_empty(cover(n, rows), 3 * h)
    p, grad_u, grad_mean = x.new_empty(n, h, dtype=grad.dtype), x.new_empty(n, h, dtype=grad.dtype), x.new_empty(n if norm else 0)
    with on(x):
        mlp_rows[(cover(n, rows),)](
            x, w_r, w_r if bias is None else bias, w_1, b_1, w_2.to(grad.dtype).contiguous(),
            *_or(w_r, weight_2, shift_2), w_r if seed is None else seed, grad, p, grad_u, grad_mean, part, n,
            **sizes(x, w_r, bias, h, norm), D=d, EPS=eps, DROPOUT=dropout,
            ROWS=rows, BLOCK=block.freqs, UNITS=units, DEPTH=_depth(block.depth, units, grad.dtype), **block.options(rows),
        )  # fmt: skip
    return p, grad_u, grad_mean, part.sum(0)


def _second_backward(p: Tensor, grad: Tensor) -> Tensor:
    """Gradients of W_2 and b_2 in a row."""
    from lff.kernels.modulated_kernels import mlp_weights

    (n, h), d, block = p.shape, grad.shape[1], BLOCKS["mlp_weights"]
    units = power_of_2(h, 16)
    depth = _depth(block.depth, units, grad.dtype)
    columns = cover(d, depth)
    rows, share, shares = split_rows("mlp_weights", n, cover(2 * programs(p.device), columns), units=units, dtype=grad.dtype)
    part = p.new_empty(shares, d * h + d, dtype=torch.float32)
    with on(p):
        mlp_weights[(columns, shares)](
            p, grad, part, n, share, H=h, D=d, ROWS=rows, UNITS=units, DEPTH=depth, **block.options(rows)
        )  # fmt: skip
    return part.sum(0)


def _depth(most: int, units: int, dtype: torch.dtype) -> int:
    """Outputs in a tile: fewer where the hidden layer is wide or in float32, which fills the registers."""
    return min(most, max(16, (2048 if dtype == torch.float32 else 4096) // units))


def _or(other: Tensor, *tensors: Tensor | None) -> list[Tensor]:
    """The tensors in float32, and in place of one that is not there, and so never read, any other."""
    return [other if tensor is None else tensor.float().contiguous() for tensor in tensors]


@mlp.register_fake
def _(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    return x.new_empty(x.shape[0], w_2.shape[0], dtype=dtype)


@mlp_backward.register_fake
def _(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    n, m = x.shape
    first, second, hidden, affine = _grad_sizes(w_r, w_1, w_2, weight_1 is not None)
    grad_x = x.new_empty(n if need_x else 0, m)
    return grad_x, x.new_empty(first), x.new_empty(second), x.new_empty(hidden), x.new_empty(affine)


def _grad_sizes(w_r: Tensor, w_1: Tensor, w_2: Tensor, norm: bool) -> tuple[int, int, int, int]:
    """Of the four rows of gradients."""
    (freqs, m), (d, h) = w_r.shape, w_2.shape
    return w_1.numel() + (m + 1) * freqs, d * h + d, 3 * h, w_1.numel() + 4 * freqs if norm else 0


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.eps, ctx.dropout, _ = inputs
    ctx.b_2_dtype = tensors.pop(6).dtype
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    _, w_r, bias, w_1, b_1, w_2, *norms, _ = ctx.saved_tensors
    need_x = ctx.needs_input_grad[0]
    grad_x, grads_1, grads_2, grads_h, grads_norm = mlp_backward(grad, *ctx.saved_tensors, ctx.eps, ctx.dropout, need_x)
    grad_w_1, grad_w_r, grad_bias = split_weights(grads_1, w_r, w_1)
    d, h = w_2.shape
    grad_w_2, grad_b_2 = torch.split(grads_2, [d * h, d])
    grad_b_1, *grads_affine_2 = torch.split(grads_h, h)
    grads_affine: list[Tensor | None] = [None, None, None, None]
    if norms[0] is not None:
        features = w_1.shape[1]
        grad_w_1, *grads_affine_1 = torch.split(grads_norm, [h * features, features, features])
        grad_w_1 = grad_w_1.reshape(w_1.shape).to(w_1.dtype)
        grads_affine = [g.to(p.dtype) for g, p in zip([*grads_affine_1, *grads_affine_2], norms, strict=True)]
    return (
        grad_x if need_x else None,
        grad_w_r,
        None if bias is None else grad_bias.to(bias.dtype),
        grad_w_1,
        grad_b_1.to(b_1.dtype),
        grad_w_2.reshape(d, h).to(w_2.dtype),
        grad_b_2.to(ctx.b_2_dtype),
        *grads_affine,
        *(None, None, None, None),
    )


mlp.register_autograd(_backward, setup_context=_save)
mlp_backward.register_autograd(refuse)
