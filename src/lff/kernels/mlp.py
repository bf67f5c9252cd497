"""Algorithm 1 for one group as a PyTorch operator on the kernels: `lff::fourier_mlp` and its backward.

Shapes: m coordinates, freqs = |F|/2, h hidden units, d outputs. Gradients are summed in a fixed order, so that two runs agree to
the bit.
"""

from typing import Any

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, cover, power_of_2, rows_at_once, split_rows, within
from lff.kernels.dense import Sizes, positions_backward, ready, sizes, weight_parts
from lff.kernels.features import refuse
from lff.kernels.fold import add_up, fold_grads, prepare
from lff.kernels.launch import Launch, remembered
from lff.kernels.operator import operator
from lff.kernels.serving import on, programs


@operator("lff::fourier_mlp")
def mlp(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """With LayerNorm where its weights and shifts are there. Gives W_1, b_1 and W_2 too, as the backward takes them."""
    x, w_r, bias = ready(x, w_r, bias)
    s, d = sizes(x, w_r, bias, w_1, weight_2 is not None, dtype), w_2.shape[0]
    out = x.new_empty(s.n, d, dtype=dtype)
    with on(x):
        w, b, second, second_bias = prepare(w_1, b_1, weight_1, shift_1, w_2, b_2, dtype)
        if s.n:
            _forward_launch(s, d, eps, dropout)(
                x, w_r, w_r if bias is None else bias, w, b, second, second_bias,
                *_or(w_r, weight_2, shift_2), w_r if seed is None else seed, out,
            )  # fmt: skip
    return out, w, b, second


@remembered
def _forward_launch(s: Sizes, d: int, eps: float, dropout: float) -> Launch:
    from lff.kernels.modulated_kernels import mlp_forward

    block, units = BLOCKS["mlp"], power_of_2(s.h, 16)
    rows = rows_at_once("mlp", s.n, programs(s.device), units=units, dtype=s.dtype)
    return Launch(
        mlp_forward, (cover(s.n, rows),), s.n,
        **s.constants(), D=d, EPS=eps, DROPOUT=dropout,
        ROWS=rows, BLOCK=within(block.freqs, s.freqs), UNITS=units, DEPTH=within(block.depth, d),
        **block.options(rows),
    )  # fmt: skip


@operator("lff::fourier_mlp_backward")
def mlp_backward(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, weight_1: Tensor | None, shift_1: Tensor | None,
    weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None, w: Tensor, b: Tensor, second: Tensor,
    eps: float, dropout: float, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of the positions, [N, m] or empty, and two rows of others: outputs must not share memory.

    They are of W_1, W_r, bias, W_2, b_2, b_1, weight_2 and shift_2; and with LayerNorm, where the first is of the folded W_1, of
    W_1, weight_1 and shift_1.
    """
    x, w_r, bias = ready(x, w_r, bias)
    s = sizes(x, w_r, bias, w, weight_2 is not None, second.dtype)
    grad_x = x.new_empty(s.n if need_x else 0, s.m)
    if not s.n:
        return grad_x, x.new_zeros(sum(_grad_sizes(w_r, w, second))), x.new_zeros(_affine_size(w, s.norm))
    grad = grad.to(second.dtype).contiguous()
    with on(x):
        p, grad_u, grad_mean, part_h = _rows_backward(s, grad, x, w_r, bias, w, b, second, weight_2, shift_2, seed, eps, dropout)
        part_2 = _second_parts(s, p, grad)
        del p
        operands = (x, w_r, bias, w, grad_u, grad_mean)
        if need_x:
            positions_backward(s, *operands, grad_x)
        grads = add_up(weight_parts(s, *operands), part_2, part_h, w_r)
        if weight_1 is None or shift_1 is None:
            return grad_x, grads, x.new_empty(0)
        grad_w, grad_b = grads[: w.numel()].reshape(w.shape), grads[-3 * s.h : -2 * s.h]
        return grad_x, grads, fold_grads(grad_w, grad_b, w_1, weight_1, shift_1)


def _rows_backward(
    s: Sizes, grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor,
    weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None, eps: float, dropout: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """What W_2 multiplied, [N, H]; gradients of u = W_1 r_x, of the features' mean, and of b_1, weight_2 and shift_2 in parts."""
    launch = _rows_launch(s, w_2.shape[0], eps, dropout)
    part = x.new_empty(launch.grid[0], 3 * s.h)
    p, grad_u, grad_mean = grad.new_empty(s.n, s.h), grad.new_empty(s.n, s.h), x.new_empty(s.n if s.norm else 0)
    launch(
        x, w_r, w_r if bias is None else bias, w_1, b_1, w_2,
        *_or(w_r, weight_2, shift_2), w_r if seed is None else seed, grad, p, grad_u, grad_mean, part,
    )  # fmt: skip
    return p, grad_u, grad_mean, part


@remembered
def _rows_launch(s: Sizes, d: int, eps: float, dropout: float) -> Launch:
    from lff.kernels.modulated_kernels import mlp_rows

    block, units = BLOCKS["mlp_rows"], power_of_2(s.h, 16)
    width = within(block.freqs, s.freqs)
    rows = rows_at_once("mlp_rows", s.n, programs(s.device), units=units, dtype=s.dtype, freqs=width)
    return Launch(
        mlp_rows, (cover(s.n, rows),), s.n,
        **s.constants(), D=d, EPS=eps, DROPOUT=dropout,
        ROWS=rows, BLOCK=width, UNITS=units, DEPTH=_depth(block.depth, d, units, s.dtype),
        **block.options(rows),
    )  # fmt: skip


def _second_parts(s: Sizes, p: Tensor, grad: Tensor) -> Tensor:
    """Gradients of W_2 and b_2, a row for each share of the positions."""
    d = grad.shape[1]
    launch = _second_launch(s, d)
    part = p.new_empty(launch.grid[1], d * s.h + d, dtype=torch.float32)
    launch(p, grad, part)
    return part


@remembered
def _second_launch(s: Sizes, d: int) -> Launch:
    from lff.kernels.modulated_kernels import mlp_weights

    block, units = BLOCKS["mlp_weights"], power_of_2(s.h, 16)
    depth = _depth(block.depth, d, units, s.dtype)
    columns = cover(d, depth)
    rows, share, shares = split_rows("mlp_weights", s.n, cover(2 * programs(s.device), columns), units=units, dtype=s.dtype)
    return Launch(
        mlp_weights, (columns, shares), s.n, share, H=s.h, D=d, ROWS=rows, UNITS=units, DEPTH=depth, **block.options(rows)
    )  # fmt: skip


def _depth(most: int, depth: int, units: int, dtype: torch.dtype) -> int:
    """Outputs in a tile: fewer where the hidden layer is wide or in float32, which fills the registers."""
    return min(within(most, depth), max(16, (2048 if dtype == torch.float32 else 4096) // units))


def _or(other: Tensor, *tensors: Tensor | None) -> list[Tensor]:
    """The tensors in float32, and in place of one that is not there, and so never read, any other."""
    return [other if tensor is None else tensor.float().contiguous() for tensor in tensors]


@mlp.register_fake
def _(
    x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor,
    weight_1: Tensor | None, shift_1: Tensor | None, weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None,
    eps: float, dropout: float, dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    (h, features), d = w_1.shape, w_2.shape[0]
    out, b = x.new_empty(x.shape[0], d, dtype=dtype), x.new_empty(h, dtype=torch.float32)
    return out, x.new_empty(h, features, dtype=dtype), b, x.new_empty(d, h, dtype=dtype)


@mlp_backward.register_fake
def _(
    grad: Tensor, x: Tensor, w_r: Tensor, bias: Tensor | None, w_1: Tensor, weight_1: Tensor | None, shift_1: Tensor | None,
    weight_2: Tensor | None, shift_2: Tensor | None, seed: Tensor | None, w: Tensor, b: Tensor, second: Tensor,
    eps: float, dropout: float, need_x: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    n, m = x.shape
    row, affine = sum(_grad_sizes(w_r, w, second)), _affine_size(w, weight_1 is not None)
    return x.new_empty(n if need_x else 0, m), x.new_empty(row), x.new_empty(affine)


def _grad_sizes(w_r: Tensor, w_1: Tensor, w_2: Tensor) -> list[int]:
    """Of the parts of the first row of gradients."""
    (freqs, m), (d, h) = w_r.shape, w_2.shape
    return [w_1.numel(), freqs * m, freqs, d * h, d, h, h, h]


def _affine_size(w_1: Tensor, norm: bool) -> int:
    """Of the second row."""
    return w_1.numel() + 2 * w_1.shape[1] if norm else 0


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, w_r, bias, w_1, b_1, w_2, b_2, *norms, seed, ctx.eps, ctx.dropout, _ = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # zeros for what has no gradient would be three launches
    ctx.dtypes = b_1.dtype, w_2.dtype, b_2.dtype
    ctx.save_for_backward(x, w_r, bias, w_1, *norms, seed, *output[1:])


def _backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if grad is None:
        return (None,) * len(ctx.needs_input_grad)
    _, w_r, bias, w_1, *norms, _, w, _, second = ctx.saved_tensors
    need_x = ctx.needs_input_grad[0]
    grad_x, grads, grads_norm = mlp_backward(grad, *ctx.saved_tensors, ctx.eps, ctx.dropout, need_x)
    grad_w_1, grad_w_r, grad_bias, grad_w_2, grad_b_2, grad_b_1, *affine_2 = grads.split_with_sizes(_grad_sizes(w_r, w, second))
    grads_affine: list[Tensor | None] = [None, None, None, None]
    if norms[0] is not None:
        features = w_1.shape[1]
        grad_w_1, *affine_1 = grads_norm.split_with_sizes([w_1.numel(), features, features])
        grads_affine = [_in(g, p.dtype) for g, p in zip([*affine_1, *affine_2], norms, strict=True)]
    b_1_dtype, w_2_dtype, b_2_dtype = ctx.dtypes
    return (
        grad_x if need_x else None,
        _in(grad_w_r.view(w_r.shape), w_r.dtype),
        None if bias is None else _in(grad_bias, bias.dtype),
        _in(grad_w_1.view(w_1.shape), w_1.dtype),
        _in(grad_b_1, b_1_dtype),
        _in(grad_w_2.view(second.shape), w_2_dtype),
        _in(grad_b_2, b_2_dtype),
        *grads_affine,
        *(None, None, None, None),
    )


def _in(grad: Tensor, dtype: torch.dtype) -> Tensor:
    """`grad.to(dtype)`, which takes ten times as long to find out that there is nothing to do."""
    return grad if grad.dtype == dtype else grad.to(dtype)


mlp.register_autograd(_backward, setup_context=_save)
mlp_backward.register_autograd(refuse)
