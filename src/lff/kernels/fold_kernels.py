"""What comes before and after the large kernels, in Triton's language: dense layers made ready, and partial sums added up."""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

from typing import no_type_check

import triton
import triton.language as tl

from lff.kernels.tiles import rounded


@triton.jit
@no_type_check
def prepare(
    w_1, b_1, weight_1, shift_1, w_2, b_2, out_w_1, out_b_1, out_w_2, out_b_2, D,
    H: tl.constexpr, F: tl.constexpr, NORM: tl.constexpr, ROWS: tl.constexpr, FEATURES: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Both dense layers as the kernels take them; grid (rows of W_1, then blocks of rows of W_2)."""
    if tl.program_id(0) < H:
        _prepare_first(w_1, b_1, weight_1, shift_1, out_w_1, out_b_1, tl.program_id(0), F, NORM, FEATURES)
    else:
        _prepare_second(w_2, b_2, out_w_2, out_b_2, tl.program_id(0) - H, D, H, ROWS, UNITS)


@triton.jit
@no_type_check
def _prepare_first(w, b, weight, shift, out_w, out_b, row, F: tl.constexpr, NORM: tl.constexpr, FEATURES: tl.constexpr):
    """A row of W * weight with its mean taken off, and b + W shift; without LayerNorm, of W and b."""
    columns = tl.arange(0, FEATURES)
    inside = columns < F
    values = tl.load(w + row * F + columns, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(b + row).to(tl.float32)
    if NORM:
        bias += tl.sum(values * tl.load(shift + columns, mask=inside, other=0.0).to(tl.float32), 0)
        values *= tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
        values -= tl.sum(values, 0) / F
    tl.store(out_b + row, bias)
    tl.store(out_w + row * F + columns, rounded(values, out_w.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def _prepare_second(w, b, out_w, out_b, block, D, H: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr):
    """Some rows of W in another dtype, and of b as a sum of three numbers of that dtype, the first of 16 columns."""
    rows, columns, index = block * ROWS + tl.arange(0, ROWS), tl.arange(0, UNITS), tl.arange(0, 16)
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


@triton.jit
@no_type_check
def fold_backward(
    w, weight, shift, grad_w, grad_b, means, out, H: tl.constexpr, F: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """From the gradients of the folded W and b, and the former's row means, those of W, weight and shift; grid (columns of W)."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gain = tl.load(weight + columns, mask=columns < F, other=0.0).to(tl.float32)[None, :]
    offset = tl.load(shift + columns, mask=columns < F, other=0.0).to(tl.float32)[None, :]
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
def add_up(
    first, second, rows, out, SHARES_1, SHARES_2, SHARES_3, SIZE_2, SIZE_3,
    W_1: tl.constexpr, FREQS: tl.constexpr, M: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sums over shares of three sets of parts, one after the other; grid (columns of the first, the second, the third).

    The first has W_1 numbers, then [M, FREQS], which is transposed, then FREQS.
    """
    SIZE_1: tl.constexpr = W_1 + (M + 1) * FREQS
    BLOCKS_1: tl.constexpr = (SIZE_1 + BLOCK - 1) // BLOCK
    block = tl.program_id(0)
    if block < BLOCKS_1:
        index = block * BLOCK + tl.arange(0, BLOCK)
        at = index - W_1
        to = tl.where((at >= 0) & (at < M * FREQS), W_1 + (at % FREQS) * M + at // FREQS, index)
        tl.store(out + to, _column_sums(first, index, SIZE_1, SHARES_1, ROWS, BLOCK), mask=index < SIZE_1)
    else:
        block -= BLOCKS_1
        blocks = tl.cdiv(SIZE_2, BLOCK)
        if block < blocks:
            index = block * BLOCK + tl.arange(0, BLOCK)
            sums = _column_sums(second, index, SIZE_2, SHARES_2, ROWS, BLOCK)
            tl.store(out + SIZE_1 + index, sums, mask=index < SIZE_2)
        else:
            index = (block - blocks) * BLOCK + tl.arange(0, BLOCK)
            sums = _column_sums(rows, index, SIZE_3, SHARES_3, ROWS, BLOCK)
            tl.store(out + SIZE_1 + SIZE_2 + index, sums, mask=index < SIZE_3)


@triton.jit
@no_type_check
def _column_sums(part, index, SIZE, SHARES, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for share in range(0, SHARES, ROWS):
        shares = share + tl.arange(0, ROWS)
        inside = (shares < SHARES)[:, None] & (index < SIZE)[None, :]
        sums += tl.load(part + shares[:, None].to(tl.int64) * SIZE + index[None, :], mask=inside, other=0.0)
    return tl.sum(sums, 0)
