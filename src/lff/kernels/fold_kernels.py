"""The dense layers made ready, in Triton's language: LayerNorm's affine part taken up by the first, and the way back."""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

from typing import no_type_check

import triton
import triton.language as tl

from lff.kernels.tiles import rounded


@triton.jit
@no_type_check
def fold_forward(w, b, weight, shift, out_w, out_b, F: tl.constexpr, BLOCK: tl.constexpr):
    """W * weight with the mean of its rows taken off, and b + W shift; grid (rows of W)."""
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside = columns < F
    values = tl.load(w + row * F + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_b + row, tl.load(b + row) + tl.sum(values * tl.load(shift + columns, mask=inside, other=0.0), 0))
    values *= tl.load(weight + columns, mask=inside, other=0.0)
    values -= tl.sum(values, 0) / F
    tl.store(out_w + row * F + columns, rounded(values, out_w.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def fold_backward(
    w, weight, shift, grad_w, grad_b, means, out, H: tl.constexpr, F: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """From the gradients of the folded W and b, and the former's row means, those of W, weight and shift; grid (columns of W)."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gain = tl.load(weight + columns, mask=columns < F, other=0.0)[None, :]
    offset = tl.load(shift + columns, mask=columns < F, other=0.0)[None, :]
    sum_weight = tl.zeros((BLOCK,), tl.float32)
    sum_shift = tl.zeros((BLOCK,), tl.float32)
    for row in range(0, H, ROWS):
        rows = row + tl.arange(0, ROWS)
        at = rows[:, None] * F + columns[None, :]
        inside = (rows < H)[:, None] & (columns < F)[None, :]
        values = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
        grads = tl.load(grad_w + at, mask=inside, other=0.0) - tl.load(means + rows, mask=rows < H, other=0.0)[:, None]
        through_b = tl.load(grad_b + rows, mask=rows < H, other=0.0)[:, None]
        tl.store(out + at, grads * gain + through_b * offset, mask=inside)
        sum_weight += tl.sum(grads * values, 0)
        sum_shift += tl.sum(through_b * values, 0)
    tl.store(out + H * F + columns, sum_weight, mask=columns < F)
    tl.store(out + H * F + F + columns, sum_shift, mask=columns < F)


@triton.jit
@no_type_check
def second_ready(w, b, out_w, out_b, D, H: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """W in another dtype, and b as a sum of three numbers of that dtype, the first of 16 columns; grid (rows of W)."""
    rows, columns, index = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK), tl.arange(0, 16)
    at = rows[:, None] * H + columns[None, :]
    inside = (rows < D)[:, None] & (columns < H)[None, :]
    tl.store(out_w + at, rounded(tl.load(w + at, mask=inside, other=0.0).to(tl.float32), out_w.dtype.element_ty), mask=inside)
    rest = tl.load(b + rows, mask=rows < D, other=0.0).to(tl.float32)
    parts = tl.zeros((ROWS, 16), tl.float32)
    for i in tl.static_range(3):
        part = rounded(rest, out_b.dtype.element_ty).to(tl.float32)
        parts = tl.where((index == i)[None, :], part[:, None], parts)
        rest -= part
    to = out_b + rows[:, None] * 16 + index[None, :]
    tl.store(to, rounded(parts, out_b.dtype.element_ty), mask=(rows < D)[:, None] & (index >= 0)[None, :])
