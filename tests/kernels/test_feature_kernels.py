import math

import pytest
import torch
from algorithm import DEVICE, off, poisoned_memory, runs_kernels  # noqa: F401

from lff import kernels
from lff.encodings.fourier import fourier_features
from lff.kernels.blocks import cover, power_of_2, split_rows

pytestmark = runs_kernels


def test_sine_and_cosine_are_within_5e_7_over_a_thousand_turns_and_within_a_turn() -> None:
    # One coordinate and frequency 1: the phase is the position itself, and float64 gives its true sine.
    x = torch.cat([torch.linspace(-math.pi, math.pi, 3001), torch.linspace(-7000, 7000, 3001)])[:, None].to(DEVICE)
    angles = x.double()
    true = torch.cat([angles.cos(), angles.sin()], -1) / math.sqrt(2)
    made = kernels.fourier_features(x, torch.ones(1, 1, device=DEVICE))
    assert (made - true).abs().max().item() * math.sqrt(2) < 5e-7


def test_positions_to_1024_are_no_further_off_than_plain_torch() -> None:
    x, w_r = 1024 * torch.rand(100, 2, device=DEVICE), 10 * torch.randn(64, 2, device=DEVICE)
    true = fourier_features(x.double(), w_r.double())
    plain = off(fourier_features(x, w_r), true)
    # Equal, but for older interpreters, which round in a fused multiply-add twice.
    assert off(kernels.fourier_features(x, w_r), true) < 1.3 * plain


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # NumPy's, of inf - inf
def test_sines_of_a_phase_without_digits_are_sines_and_of_nan_nan() -> None:
    x = torch.tensor([[1e8], [3e12], [-1e30], [math.nan], [math.inf]], device=DEVICE)
    made = kernels.fourier_features(x, torch.ones(1, 1, device=DEVICE)) * math.sqrt(2)
    assert (made[:3].abs() <= 1 + 1e-6).all()
    assert made[3:].isnan().all()


# Each size that is awkward for a tile once, and every number of coordinates.
@pytest.mark.parametrize(
    ("n", "m", "freqs", "bias"),
    [(0, 2, 5, True), (1, 1, 1, True), (63, 3, 15, False), (1023, 2, 1, True), (17, 4, 385, True)]
    + [(5, m, 20, m % 2 == 0) for m in (5, 6, 7, 8, 9)],
)
@pytest.mark.usefixtures("poisoned_memory")
def test_features_and_all_gradients_are_those_of_float64(n: int, m: int, freqs: int, bias: bool) -> None:
    x, w_r, b = (torch.randn(shape, device=DEVICE, requires_grad=True) for shape in ((n, m), (freqs, m), (freqs,)))
    inputs = (x, w_r, b) if bias else (x, w_r)
    out, true = kernels.fourier_features(*inputs), fourier_features(*(i.double() for i in inputs))
    grad = torch.randn_like(out)
    assert off(out, true) < 1e-6
    for ours, theirs in zip(
        torch.autograd.grad(out, inputs, grad), torch.autograd.grad(true, inputs, grad.double()), strict=True
    ):
        assert off(ours, theirs.double()) < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_half_precision_output_costs_its_own_rounding_only(dtype: torch.dtype) -> None:
    x, w_r = 1024 * torch.rand(40, 2, device=DEVICE), torch.randn(9, 2, device=DEVICE, requires_grad=True)
    out, true = kernels.fourier_features(x, w_r, dtype=dtype), fourier_features(x.double(), w_r.double())
    assert out.dtype == dtype
    assert off(out, true) < 1.01 * off(true.to(dtype), true) + 1e-4
    grad = torch.randn_like(out)
    (ours,), (theirs,) = torch.autograd.grad(out, w_r, grad), torch.autograd.grad(true, w_r, grad.double())
    assert off(ours, theirs.double()) < 3e-4  # the gradient is taken in float32


def test_any_batch_shape_any_strides_and_integer_or_half_positions_serve() -> None:
    x, w_r = torch.randint(50, (4, 6, 3), device=DEVICE), torch.randn(3, 7, device=DEVICE).T
    true = fourier_features(x, w_r)
    for given in (x, x.half(), x.bfloat16(), x.float().transpose(0, 1).contiguous().transpose(0, 1), x.int(), x.to(torch.uint8)):
        torch.testing.assert_close(kernels.fourier_features(given, w_r), true, rtol=0, atol=1e-5)
    torch.testing.assert_close(kernels.fourier_features(x[0, 0], w_r), true[0, 0], rtol=0, atol=1e-5)
    half = x.half().requires_grad_()
    kernels.fourier_features(half, w_r).sum().backward()
    assert half.grad.dtype == torch.float16


def test_a_scale_of_its_own_takes_the_place_of_that_of_eq_2() -> None:
    x, w_r = (torch.randn(shape, device=DEVICE, requires_grad=True) for shape in ((9, 2), (3, 2)))
    out, plain = kernels.fourier_features(x, w_r, scale=1.0), kernels.fourier_features(x, w_r)
    torch.testing.assert_close(out, plain * math.sqrt(6))
    grad = torch.randn_like(out)
    ours, theirs = torch.autograd.grad(out, (x, w_r), grad), torch.autograd.grad(plain, (x, w_r), grad * math.sqrt(6))
    torch.testing.assert_close(ours, theirs)


def test_only_the_gradients_asked_for_are_computed() -> None:
    x, w_r = torch.randn(5, 2, device=DEVICE), torch.randn(3, 2, device=DEVICE, requires_grad=True)
    out = kernels.fourier_features(x, w_r, torch.zeros(3, device=DEVICE))
    (grad,) = torch.autograd.grad(out.sum(), w_r)
    assert grad.shape == w_r.shape


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 63, 1023, 4096, 2**20])
@pytest.mark.parametrize("programs", [1, 4, 264])
def test_shares_cover_the_rows_and_none_is_empty(rows: int, programs: int) -> None:
    block, share, shares = split_rows("mlp_rows", rows, programs, units=32)
    assert share % block == 0
    assert (shares - 1) * share < rows <= shares * share
    assert shares <= programs
    assert [power_of_2(n) for n in (1, 2, 3, 17)] == [1, 2, 4, 32]
    assert [cover(n, 16) for n in (0, 1, 16, 17)] == [0, 1, 1, 2]
