"""What the kernels share, in Triton's language: a tile of phases, its sine and cosine, and sums over it.

A tile is [ROWS, BLOCK], some positions by some frequencies, or the transpose where sums over positions are wanted. Positions are
float32 [N, M] and frequencies [FREQS, M], both contiguous.
Sizes in capitals are known when a kernel is compiled.
"""
# mypy: ignore-errors
# Triton compiles this; it is not run as Python, and no checker may wrap it.

import os
from typing import no_type_check

import triton
import triton.language as tl
from triton.language.extra import libdevice

#: Triton's interpreter runs the same kernels in NumPy, which has no bfloat16: two functions below step in.
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")

ONE_TURN_HIGH = tl.constexpr(6.28125)  # 8 bits of 2 pi, so that its multiples are exact up to 2^16 turns
ONE_TURN_LOW = tl.constexpr(1.9353071795864769e-03)  # the rest
TO_TURNS = tl.constexpr(0.15915494309189535)
ROUNDER = tl.constexpr(12582912.0)  # 1.5 * 2^23: a float32 plus this has no bits left below 1


@triton.jit
@no_type_check
def sine_cosine(angles):
    """Sine and cosine of float32 radians: 4 instructions to take whole turns off, 3 for the two.

    Each is within 6e-7 up to a thousand turns; beyond, what is added is a three-thousandth of the angle's own rounding. Radians,
    since weights in turns would be rounded a second time.

    `tl.sin` and `tl.cos` compile to CUDA's accurate ones, some 20 instructions each with a branch for large angles. What is left
    of an angle is within [-pi, pi], where the hardware's fast ones are good to 5e-7; the interpreter knows the others alone.
    """
    turns = (angles * TO_TURNS + ROUNDER) - ROUNDER  # to the nearest
    r = (angles - turns * ONE_TURN_HIGH) - turns * ONE_TURN_LOW
    if INTERPRETED:
        return tl.sin(r), tl.cos(r)
    else:
        return libdevice.fast_sinf(r), libdevice.fast_cosf(r)


@triton.jit
@no_type_check
def normal(z):
    """The standard normal distribution and its density, each within 1e-7.

    One exponential serves both (Abramowitz and Stegun, 7.1.26). `tl.erf` takes two and a half times as many instructions, and
    1 + erf would lose the tail below zero.
    """
    density = exponential_2(z * z * -0.7213475204444817)  # exp(-z^2 / 2)
    t = reciprocal(1.0 + 0.2316418880 * tl.abs(z))  # 0.3275911 / sqrt(2)
    tail = ((((0.5307027145 * t - 0.7265760135) * t + 0.7107068705) * t - 0.142248368) * t + 0.127414796) * t * density
    return tl.where(z < 0, tail, 1.0 - tail), density * 0.3989422804014327


@triton.jit
@no_type_check
def exponential_2(values):
    """2 to the power of a number, in one instruction, within 2e-7 of it; `tl.exp2` takes four, for results below 2^-126."""
    if INTERPRETED:
        return tl.exp2(values)
    else:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [values], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
@no_type_check
def reciprocal(values):
    """Of numbers that are neither huge nor tiny, in one instruction, within 1e-7."""
    if INTERPRETED:
        return 1.0 / values
    else:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [values], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
@no_type_check
def phases(
    x, w_r, bias, rows, freqs, N, FREQS: tl.constexpr, M: tl.constexpr, BIASED: tl.constexpr, ACROSS: tl.constexpr = False
):
    """x W_r^T + bias for a tile, or its transpose if ACROSS. The products are written out: `tl.dot` would round them to TF32."""
    angles = spread(coordinate(x, rows, 0, N, M), ACROSS) * spread(coordinate(w_r, freqs, 0, FREQS, M), not ACROSS)
    for i in tl.static_range(1, M):
        x_i, w_i = coordinate(x, rows, i, N, M), coordinate(w_r, freqs, i, FREQS, M)
        angles = tl.fma(spread(x_i, ACROSS), spread(w_i, not ACROSS), angles)  # rounded once, as `torch.addcmul` does
    if BIASED:
        angles += spread(coordinate(bias, freqs, 0, FREQS, 1), not ACROSS)
    return angles


@triton.jit
@no_type_check
def spread(values, ACROSS: tl.constexpr):
    """A vector as the only row of a tile, or as its only column."""
    return values[None, :] if ACROSS else values[:, None]


@triton.jit
@no_type_check
def coordinate(matrix, rows, i, N, M: tl.constexpr):
    """Column i of some rows of a contiguous [N, M], and 0 beyond its end."""
    return tl.load(matrix + rows * M + i, mask=rows < N, other=0.0)


@triton.jit
@no_type_check
def add_weight_sums(sums, grad_angles, x, rows, N, M: tl.constexpr, PADDED: tl.constexpr):
    """Adds to [BLOCK, PADDED] what a tile, [BLOCK, ROWS], gives to the gradients of W_r (columns up to M) and of the bias (M)."""
    index = tl.arange(0, PADDED)[None, :]
    for i in tl.static_range(M):
        column = tl.sum(grad_angles * coordinate(x, rows, i, N, M)[None, :], 1)
        sums += tl.where(index == i, column[:, None], 0.0)
    return sums + tl.where(index == M, tl.sum(grad_angles, 1)[:, None], 0.0)


@triton.jit
@no_type_check
def add_position_sums(sums, grad_angles, w_r, freqs, FREQS: tl.constexpr, M: tl.constexpr, PADDED: tl.constexpr):
    """Adds to [ROWS, PADDED] what a tile gives to the gradient of the positions."""
    index = tl.arange(0, PADDED)[None, :]
    for i in tl.static_range(M):
        column = tl.sum(grad_angles * coordinate(w_r, freqs, i, FREQS, M)[None, :], 1)
        sums += tl.where(index == i, column[:, None], 0.0)
    return sums


@triton.jit
@no_type_check
def store_sums(to, sums, freqs, FREQS: tl.constexpr, M: tl.constexpr, PADDED: tl.constexpr):
    """Writes a program's [M + 1, FREQS]: gradients of W_r, transposed, and of the bias."""
    index = tl.arange(0, PADDED)[None, :]
    tl.store(to + index * FREQS + freqs[:, None], sums, mask=(index <= M) & (freqs < FREQS)[:, None])


@triton.jit
@no_type_check
def rounded(values, DTYPE: tl.constexpr):
    """float32 values in another dtype, rounded to the nearest; the interpreter's own bfloat16 would cut off."""
    if INTERPRETED and DTYPE == tl.bfloat16:  # noqa: SIM300
        bits = values.to(tl.uint32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        values = bits.to(tl.float32, bitcast=True)
    return values.to(DTYPE)


@triton.jit
@no_type_check
def product(a, b, sums):
    """sums + a b with float32 sums. Half precision inputs have exact products; float32 ones have them to 2^-21.

    TF32 three times, on the parts that one TF32 cuts off too: on tensor cores, with 2 to 3 times fewer instructions than "ieee".
    """
    if INTERPRETED:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, sums, input_precision="tf32x3")
