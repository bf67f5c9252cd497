"""Eq. 2 alone, in Triton's language: features, and what their gradient gives to the weights and to the positions."""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

from typing import no_type_check

import triton
import triton.language as tl

from lff.kernels.tiles import add_position_sums, add_weight_sums, phases, rounded, sine_cosine, spread, store_sums


@triton.jit
@no_type_check
def features_forward(
    x, w_r, bias, out, N,
    FREQS: tl.constexpr, M: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """[cos || sin] * SCALE of a tile; grid (positions, frequencies)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    freqs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sin, cos = sine_cosine(phases(x, w_r, bias, rows, freqs, N, FREQS, M, BIASED))
    at = out + rows[:, None] * (2 * FREQS) + freqs[None, :]
    inside = (rows < N)[:, None] & (freqs < FREQS)[None, :]
    tl.store(at, rounded(cos * SCALE, out.dtype.element_ty), mask=inside)
    tl.store(at + FREQS, rounded(sin * SCALE, out.dtype.element_ty), mask=inside)


@triton.jit
@no_type_check
def _grad_angles(
    x, w_r, bias, grad, rows, freqs, N,
    FREQS: tl.constexpr, M: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr, ACROSS: tl.constexpr,
):  # fmt: skip
    """d/d angle = (d/d sin) cos - (d/d cos) sin, for a tile."""
    sin, cos = sine_cosine(phases(x, w_r, bias, rows, freqs, N, FREQS, M, BIASED, ACROSS))
    at = grad + spread(rows, ACROSS) * (2 * FREQS) + spread(freqs, not ACROSS)
    inside = spread(rows < N, ACROSS) & spread(freqs < FREQS, not ACROSS)
    grad_cos = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    grad_sin = tl.load(at + FREQS, mask=inside, other=0.0).to(tl.float32)
    return (grad_sin * cos - grad_cos * sin) * SCALE


@triton.jit
@no_type_check
def features_weights(
    x, w_r, bias, grad, part, N, SHARE,
    FREQS: tl.constexpr, M: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Gradients of W_r and of the bias over a share of the positions: [M + 1, FREQS] a share; grid (frequencies, shares)."""
    freqs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1).to(tl.int64) * SHARE
    sums = tl.zeros((BLOCK, PADDED), tl.float32)
    for row in range(first, min(first + SHARE, N), ROWS):
        rows = row + tl.arange(0, ROWS)
        grads = _grad_angles(x, w_r, bias, grad, rows, freqs, N, FREQS, M, BIASED, SCALE, True)
        sums = add_weight_sums(sums, grads, x, rows, N, M, PADDED)
    store_sums(part + tl.program_id(1).to(tl.int64) * ((M + 1) * FREQS), sums, freqs, FREQS, M, PADDED)


@triton.jit
@no_type_check
def features_positions(
    x, w_r, bias, grad, out, N,
    FREQS: tl.constexpr, M: tl.constexpr, BIASED: tl.constexpr, SCALE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Gradient of the positions; grid (positions)."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, PADDED), tl.float32)
    for freq in range(0, FREQS, BLOCK):
        freqs = freq + tl.arange(0, BLOCK)
        grads = _grad_angles(x, w_r, bias, grad, rows, freqs, N, FREQS, M, BIASED, SCALE, False)
        sums = add_position_sums(sums, grads, w_r, freqs, FREQS, M, PADDED)
    index = tl.arange(0, PADDED)[None, :]
    tl.store(out + rows[:, None] * M + index, sums, mask=(rows < N)[:, None] & (index < M))
