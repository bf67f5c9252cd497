"""The first dense layer on features, in Triton's language: forward for a hidden layer of any width, and backward for every one.

u = W_1 r_x, [N, H]. From its gradient and that of the features' mean, the features are made again and never stored.
"""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

from typing import no_type_check

import triton
import triton.language as tl

from lff.kernels.modulated_kernels import hidden_units
from lff.kernels.tiles import add_position_sums, add_weight_sums, phases, product, rounded, sine_cosine, spread, store_sums


@triton.jit
@no_type_check
def dense_forward(
    x, w_r, bias, w_1, b_1, out, means, N,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr,
    SCALE: tl.constexpr, EPS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """W_1 LN_1(r_x) + b_1, and the mean of the features; grid (positions, units)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    units = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    z, mean, _ = hidden_units(x, w_r, bias, w_1, b_1, rows, units, N, FREQS, M, H, BIASED, NORM, SCALE, EPS, ROWS, BLOCK, UNITS)
    inside = (rows < N)[:, None] & (units < H)[None, :]
    tl.store(out + rows[:, None] * H + units[None, :], rounded(z, out.dtype.element_ty), mask=inside)
    if NORM and tl.program_id(1) == 0:
        tl.store(means + rows, mean, mask=rows < N)


@triton.jit
@no_type_check
def _grad_features(
    w_1, grad_u, grad_mean, rows, freqs, N,
    FREQS: tl.constexpr, H: tl.constexpr, NORM: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """Gradients of a tile of sines and cosines: W_1^T d/du, and what comes through the mean."""
    grad_cos = spread(tl.zeros((ROWS,), tl.float32), ACROSS) + spread(tl.zeros((BLOCK,), tl.float32), not ACROSS)
    grad_sin = grad_cos
    for unit in range(0, H, UNITS):
        units = unit + tl.arange(0, UNITS)
        inside = spread(rows < N, ACROSS) & spread(units < H, not ACROSS)
        grad = tl.load(grad_u + spread(rows, ACROSS) * H + spread(units, not ACROSS), mask=inside, other=0.0)
        at = w_1 + spread(units, ACROSS) * (2 * FREQS) + spread(freqs, not ACROSS)
        inside = spread(units < H, ACROSS) & spread(freqs < FREQS, not ACROSS)
        w_cos, w_sin = tl.load(at, mask=inside, other=0.0), tl.load(at + FREQS, mask=inside, other=0.0)
        if ACROSS:
            grad_cos, grad_sin = product(w_cos, grad, grad_cos), product(w_sin, grad, grad_sin)
        else:
            grad_cos, grad_sin = product(grad, w_cos, grad_cos), product(grad, w_sin, grad_sin)
    if NORM:
        through = spread(tl.load(grad_mean + rows, mask=rows < N, other=0.0), ACROSS)
        grad_cos += through
        grad_sin += through
    return grad_sin, grad_cos


@triton.jit
@no_type_check
def dense_weights(
    x, w_r, bias, w_1, grad_u, grad_mean, part, N, SHARE, STRIDE,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr, SCALE: tl.constexpr,
    W_1: tl.constexpr, W_R: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Gradients over a share of the positions, of W_1 or of W_r and the bias or of all; grid (frequencies, shares, units).

    Those of W_1 are of one block of units; those of W_r, behind them, take all units. Shares are STRIDE apart. Tiles are
    [BLOCK, ROWS], so that a product's result is as the next product wants its first factor; sines are made in one layout only.
    """
    freqs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    units = tl.program_id(2) * UNITS + tl.arange(0, UNITS)
    first = tl.program_id(1).to(tl.int64) * SHARE
    sum_cos = tl.zeros((BLOCK, UNITS), tl.float32)
    sum_sin = tl.zeros((BLOCK, UNITS), tl.float32)
    sums = tl.zeros((BLOCK, PADDED), tl.float32)
    for row in range(first, min(first + SHARE, N), ROWS):
        rows = row + tl.arange(0, ROWS)
        angles = phases(x, w_r, bias, rows, freqs, N, FREQS, M, BIASED, True)
        if W_R:
            grad_sin, grad_cos = _grad_features(w_1, grad_u, grad_mean, rows, freqs, N, FREQS, H, NORM, ROWS, BLOCK, UNITS, True)
            # Adds nothing, but ties the sines to a product's layout; the compiler would make them a second time for W_1.
            angles += 0.0 * grad_cos
        sin, cos = sine_cosine(angles)
        if W_1:
            inside = (rows < N)[:, None] & (units < H)[None, :]
            grad = tl.load(grad_u + rows[:, None] * H + units[None, :], mask=inside, other=0.0)
            sum_cos = product(rounded(cos, grad_u.dtype.element_ty), grad, sum_cos)
            sum_sin = product(rounded(sin, grad_u.dtype.element_ty), grad, sum_sin)
        if W_R:
            sums = add_weight_sums(sums, (grad_sin * cos - grad_cos * sin) * SCALE, x, rows, N, M, PADDED)
    share = tl.program_id(1).to(tl.int64) * STRIDE
    if W_1:
        at = part + share + units[None, :] * (2 * FREQS) + freqs[:, None]
        inside = (units < H)[None, :] & (freqs < FREQS)[:, None]
        tl.store(at, sum_cos * SCALE, mask=inside)
        tl.store(at + FREQS, sum_sin * SCALE, mask=inside)
    if W_R:
        store_sums(part + W_1 * H * 2 * FREQS + share, sums, freqs, FREQS, M, PADDED)


@triton.jit
@no_type_check
def dense_positions(
    x, w_r, bias, w_1, grad_u, grad_mean, out, N,
    FREQS: tl.constexpr, M: tl.constexpr, H: tl.constexpr, BIASED: tl.constexpr, NORM: tl.constexpr, SCALE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, UNITS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Gradient of the positions; grid (positions)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, PADDED), tl.float32)
    for freq in range(0, FREQS, BLOCK):
        freqs = freq + tl.arange(0, BLOCK)
        sin, cos = sine_cosine(phases(x, w_r, bias, rows, freqs, N, FREQS, M, BIASED))
        grad_sin, grad_cos = _grad_features(w_1, grad_u, grad_mean, rows, freqs, N, FREQS, H, NORM, ROWS, BLOCK, UNITS, False)
        sums = add_position_sums(sums, (grad_sin * cos - grad_cos * sin) * SCALE, w_r, freqs, FREQS, M, PADDED)
    index = tl.arange(0, PADDED)[None, :]
    tl.store(out + rows[:, None] * M + index, sums, mask=(rows < N)[:, None] & (index < M))
