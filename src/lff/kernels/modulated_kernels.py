"""Algorithm 1 in Triton's language: features to hidden units to outputs, and back to the hidden units.

A program works on a tile of positions and holds all of their hidden units, [ROWS, UNITS], in registers; features and outputs pass
by in blocks. W_1 is [H, |F|] and W_2 [D, H], as in `nn.Linear`, the affine part of LN_1 already in W_1 and b_1 (docs/kernels.md).
"""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

from typing import no_type_check

import triton
import triton.language as tl

from lff.kernels.tiles import normal, phases, product, rounded, sine_cosine


@triton.jit
@no_type_check
def hidden_units(
    x, w_r, bias, w_1, b_1, rows, units, N,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr,
    SCALE: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """W_1 LN_1(r_x) + b_1 of some positions and units, and the mean and reciprocal deviation of their features.

    With the mean taken off every row of W_1, W_1 (r - mean) is W_1 r; and the squares of r_x always sum to 1/2, so that its
    variance is 1 / (2 |F|) - mean^2.
    """
    z = tl.zeros((ROWS, UNITS), tl.float32)
    total = tl.zeros((ROWS, UNITS), tl.float32)
    first = (tl.arange(0, UNITS) == 0)[None, :]
    for freq in range(0, FREQS, BLOCK):
        freqs = freq + tl.arange(0, BLOCK)
        sin, cos = sine_cosine(phases(x, w_r, bias, rows, freqs, N, FREQS, M, BIASED))
        at = w_1 + units[None, :] * (2 * FREQS) + freqs[:, None]
        inside = (units < H)[None, :] & (freqs < FREQS)[:, None]
        cos, sin = rounded(cos, w_1.dtype.element_ty), rounded(sin, w_1.dtype.element_ty)
        z = product(cos, tl.load(at, mask=inside, other=0.0), z)
        z = product(sin, tl.load(at + FREQS, mask=inside, other=0.0), z)
        if NORM:
            # As a product of the same shape with ones: for `tl.sum` every sine would be made a second time, in another layout.
            ones = rounded(tl.where((freqs < FREQS)[:, None] & first, 1.0, 0.0), w_1.dtype.element_ty)
            total = product(cos, ones, product(sin, ones, total))
    mean = tl.sum(total, 1) * (SCALE / (2 * FREQS))
    rstd = tl.rsqrt(tl.maximum(1 / (4 * FREQS) - mean * mean, 0.0) + EPS)
    z *= SCALE
    if NORM:
        z *= rstd[:, None]
    return z + vector(b_1, units, H)[None, :], mean, rstd


@triton.jit
@no_type_check
def activate(
    z, weight_2, shift_2, rows, units, seed, H: tl.constexpr, NORM: tl.constexpr, EPS: tl.constexpr, DROPOUT: tl.constexpr
):
    """LN_2(GELU(z)) before its affine part and after, its reciprocal deviation, and by what dropout multiplies it."""
    below, _ = normal(z)
    n = z * below  # GELU
    after, rstd = n, tl.sum(n, 1)
    if NORM:
        n = tl.where((units < H)[None, :], n - (rstd / H)[:, None], 0.0)
        rstd = tl.rsqrt(tl.sum(n * n, 1) / H + EPS)
        n *= rstd[:, None]
        after = n * vector(weight_2, units, H)[None, :] + vector(shift_2, units, H)[None, :]
    kept = tl.full(z.shape, 1.0, tl.float32)
    if DROPOUT > 0:
        # 32-bit counters: after 2^32 units the sequence starts again.
        counters = (rows[:, None] * H + units[None, :]).to(tl.int32)
        kept = tl.where(tl.rand(tl.load(seed), counters) >= DROPOUT, 1 / (1 - DROPOUT), 0.0)
    return n, after, rstd, kept


@triton.jit
@no_type_check
def vector(values, index, SIZE: tl.constexpr):
    """Entries of a vector, and 0 beyond its end."""
    return tl.load(values + index, mask=index < SIZE, other=0.0)


@triton.jit
@no_type_check
def mlp_forward(
    x, w_r, bias, w_1, b_1, w_2, b_2, weight_2, shift_2, seed, out, N,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr,
    SCALE: tl.constexpr, EPS: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """W_2 drop(LN_2(GELU(W_1 LN_1(r_x) + b_1))) + b_2; grid (positions)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    units = tl.arange(0, UNITS)
    z, _, _ = hidden_units(x, w_r, bias, w_1, b_1, rows, units, N, FREQS, M, H, BIASED, NORM, SCALE, EPS, ROWS, BLOCK, UNITS)
    _, after, _, kept = activate(z, weight_2, shift_2, rows, units, seed, H, NORM, EPS, DROPOUT)
    p = rounded(after * kept, w_2.dtype.element_ty)
    index = tl.arange(0, 16)
    ones = rounded(tl.zeros((ROWS, 16), tl.float32) + tl.where(index < 3, 1.0, 0.0)[None, :], w_2.dtype.element_ty)
    for start in range(0, D, DEPTH):
        depths = start + tl.arange(0, DEPTH)
        w = tl.load(w_2 + depths[None, :] * H + units[:, None], mask=(depths < D)[None, :] & (units < H)[:, None], other=0.0)
        # The bias in three parts by a product of its own: as a sum it would cost more than the product by W_2 does.
        b = tl.load(b_2 + depths[None, :] * 16 + index[:, None], mask=(depths < D)[None, :], other=0.0)
        y = product(ones, b, product(p, w, tl.zeros((ROWS, DEPTH), tl.float32)))
        inside = (rows < N)[:, None] & (depths < D)[None, :]
        tl.store(out + rows[:, None] * D + depths[None, :], rounded(y, out.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def mlp_rows(
    x, w_r, bias, w_1, b_1, w_2, weight_2, shift_2, seed, grad, p, grad_u, grad_mean, part, N,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, D: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr,
    SCALE: tl.constexpr, EPS: tl.constexpr, DROPOUT: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """From the outputs back to the hidden units; grid (positions).

    Writes what W_2 multiplied, p, [N, H]; the gradients of u = W_1 r_x, [N, H], and of every feature alike through their mean,
    [N]; and for each program its sums for b_1 and for LN_2's weight and shift, [3 H].
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    units = tl.arange(0, UNITS)
    z, mean, rstd_1 = hidden_units(
        x, w_r, bias, w_1, b_1, rows, units, N, FREQS, M, H, BIASED, NORM, SCALE, EPS, ROWS, BLOCK, UNITS
    )
    grad_n = tl.zeros((ROWS, UNITS), tl.float32)
    for start in range(0, D, DEPTH):
        depths = start + tl.arange(0, DEPTH)
        inside = (rows < N)[:, None] & (depths < D)[None, :]
        grad_y = tl.load(grad + rows[:, None] * D + depths[None, :], mask=inside, other=0.0)
        inside = (depths < D)[:, None] & (units < H)[None, :]
        grad_n = product(grad_y, tl.load(w_2 + depths[:, None] * H + units[None, :], mask=inside, other=0.0), grad_n)
    n, after, rstd_2, kept = activate(z, weight_2, shift_2, rows, units, seed, H, NORM, EPS, DROPOUT)
    at = rows[:, None] * H + units[None, :]
    inside = (rows < N)[:, None] & (units < H)[None, :]
    tl.store(p + at, rounded(after * kept, p.dtype.element_ty), mask=inside)
    part += tl.program_id(0).to(tl.int64) * (3 * H) + units
    grad_n *= kept
    tl.store(part + H, tl.sum(grad_n * n, 0), mask=units < H)
    tl.store(part + 2 * H, tl.sum(grad_n, 0), mask=units < H)
    if NORM:
        grad_n *= vector(weight_2, units, H)[None, :]
        shared = tl.sum(grad_n, 1)[:, None] + n * tl.sum(grad_n * n, 1)[:, None]
        grad_n = tl.where((units < H)[None, :], (grad_n - shared / H) * rstd_2[:, None], 0.0)
    below, density = normal(z)
    grad_z = grad_n * (below + z * density)  # GELU'
    tl.store(part, tl.sum(grad_z, 0), mask=units < H)
    if NORM:
        through = tl.sum(grad_z * (z - vector(b_1, units, H)[None, :]), 1) * mean * rstd_1 * rstd_1 / (2 * FREQS)
        tl.store(grad_mean + rows, through, mask=rows < N)
        grad_z *= rstd_1[:, None]
    tl.store(grad_u + at, rounded(grad_z, grad_u.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def mlp_weights(
    p, grad, part, N, SHARE,
    H: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Gradients of W_2 and b_2 over a share of the positions, [D H + D]; grid (outputs, shares)."""
    depths = tl.program_id(0) * DEPTH + tl.arange(0, DEPTH)
    units = tl.arange(0, UNITS)
    first = tl.program_id(1).to(tl.int64) * SHARE
    sum_w = tl.zeros((DEPTH, UNITS), tl.float32)
    sum_b = tl.zeros((DEPTH, 16), tl.float32)
    ones = rounded(tl.zeros((ROWS, 16), tl.float32) + tl.where(tl.arange(0, 16) == 0, 1.0, 0.0)[None, :], grad.dtype.element_ty)
    for row in range(first, min(first + SHARE, N), ROWS):
        rows = row + tl.arange(0, ROWS)
        inside = (rows < N)[:, None]
        grad_y = tl.load(grad + rows[:, None] * D + depths[None, :], mask=inside & (depths < D)[None, :], other=0.0)
        p_x = tl.load(p + rows[:, None] * H + units[None, :], mask=inside & (units < H)[None, :], other=0.0)
        sum_w = product(tl.trans(grad_y), p_x, sum_w)
        sum_b = product(tl.trans(grad_y), ones, sum_b)
    part += tl.program_id(1).to(tl.int64) * (D * H + D)
    tl.store(part + depths[:, None] * H + units[None, :], sum_w, mask=(depths < D)[:, None] & (units < H)[None, :])
    tl.store(part + D * H + depths, tl.sum(sum_b, 1), mask=depths < D)
