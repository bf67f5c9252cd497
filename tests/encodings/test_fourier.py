import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf
from torch import nn

import lff
from lff import arguments
from lff.encodings.fourier import FourierFeatures, LearnableFourier, fourier_features


# Several gammas, because at gamma = 1 the scales 1/gamma, gamma^-2 and gamma^2 agree and a wrong one passes.
@pytest.mark.parametrize("gamma", [0.5, 1.0, 4.0, 100.0])
@pytest.mark.parametrize("coords", [1, 2, 3, 4])
def test_initial_features_approximate_the_gaussian_kernel(gamma: float, coords: int) -> None:
    w_r = FourierFeatures(coords, 2**17, gamma=gamma).w_r.detach()
    direction = torch.nn.functional.normalize(torch.randn(5, coords), dim=-1)
    distance = gamma * torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0])
    kernel = fourier_features(distance[:, None] * direction, w_r) @ fourier_features(torch.zeros(coords), w_r)
    # E[cos(w . d)] = exp(-|d|^2 / 2 gamma^2), summed over |F|/2 frequencies and scaled by 1/|F|: hence the half.
    # Eq. 5 prints exp(-|d|^2 / gamma^2), which Eq. 2 and 4 do not give; see docs/errata.md.
    torch.testing.assert_close(kernel, 0.5 * torch.exp(-((distance / gamma) ** 2) / 2), atol=0.01, rtol=0.0)


@pytest.mark.parametrize("gamma", [0.5, 4.0, 100.0])
def test_w_r_is_drawn_with_variance_gamma_to_the_minus_2(gamma: float) -> None:
    w_r = FourierFeatures(4, 2**14, gamma=gamma).w_r
    assert w_r.std().item() == pytest.approx(1 / gamma, rel=0.02)
    assert w_r.mean().item() == pytest.approx(0, abs=0.02 / gamma)


@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_uniform_w_r_fills_zero_to_one_over_gamma(gamma: float) -> None:
    w_r = FourierFeatures(2, 2**14, gamma=gamma, init="uniform").w_r
    assert w_r.min() >= 0
    assert w_r.max() <= 1 / gamma
    assert w_r.mean().item() == pytest.approx(0.5 / gamma, rel=0.02)
    assert w_r.std().item() == pytest.approx(1 / gamma / math.sqrt(12), rel=0.02)


def test_a_range_of_gammas_spreads_the_frequencies_evenly_over_its_scales() -> None:
    """|w| gamma is Rayleigh-distributed in two coordinates, so log |w| is log-uniform but for that noise of known spread."""
    low, high = 1.0, 64.0
    features = FourierFeatures(2, 2**17, gamma=(low, high))
    scales = -features.w_r.detach().double().norm(dim=1).log()
    # Mean and variance of log gamma, and of the log of a Rayleigh variable: (log 2 - Euler's constant) / 2 and pi^2 / 24.
    euler = 0.5772156649
    assert scales.mean().item() == pytest.approx(math.log(low * high) / 2 - (math.log(2) - euler) / 2, abs=0.02)
    assert scales.var().item() == pytest.approx(math.log(high / low) ** 2 / 12 + math.pi**2 / 24, rel=0.02)
    assert features.w_r.var().item() == pytest.approx(features.variance, rel=0.02)
    assert FourierFeatures(2, 8, gamma=(4.0, 4.0)).variance == FourierFeatures(2, 8, gamma=4.0).variance
    uniform = FourierFeatures(2, 2**12, gamma=(low, high), init="uniform").w_r
    assert 0 <= uniform.min().item() < uniform.max().item() <= 1 / low


@pytest.mark.parametrize("gamma", [(1.0,), (4.0, 1.0), (0.0, 1.0), (1.0, 2.0, 3.0), "ab"])
def test_a_range_of_gammas_is_two_numbers_the_smaller_first(gamma: object) -> None:
    with pytest.raises(ValueError, match="gamma"):
        arguments.scales("gamma", gamma)


def test_features_are_equation_2_with_cosines_first() -> None:
    x, w_r = torch.tensor([[0.5, -2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    angles = [0.5, -2.0, 0.5 * 2 - 2.0 * 3]
    expected = [[math.cos(a) / math.sqrt(6) for a in angles] + [math.sin(a) / math.sqrt(6) for a in angles]]
    torch.testing.assert_close(fourier_features(x, w_r), torch.tensor(expected))


@given(coords=st.integers(1, 8), freqs=st.integers(1, 65), shift=st.floats(-50, 50), seed=st.integers(0, 2**31))
def test_dot_product_is_shift_invariant_for_any_weights(coords: int, freqs: int, shift: float, seed: int) -> None:
    torch.manual_seed(seed)
    w_r, bias = torch.randn(freqs, coords).double(), torch.randn(freqs).double()
    x, y = torch.randn(2, 5, coords).double()
    dot = (fourier_features(x, w_r) * fourier_features(y, w_r)).sum(-1)
    moved = (fourier_features(x + shift, w_r) * fourier_features(y + shift, w_r)).sum(-1)
    torch.testing.assert_close(moved, dot)
    # The bias of the counted run turns both phases alike.
    turned = (fourier_features(x, w_r, bias) * fourier_features(y, w_r, bias)).sum(-1)
    torch.testing.assert_close(turned, dot)


def test_every_position_has_the_squared_norm_one_half() -> None:
    features = FourierFeatures(3, 64)(torch.randn(100, 3) * 30)
    torch.testing.assert_close(features.square().sum(-1), torch.full((100,), 0.5))


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_algorithm_1_against_an_independent_computation(groups: int, layer_norm: bool) -> None:
    """Line by line in NumPy and float64, with SciPy's erf, from the weights alone."""
    encode = LearnableFourier(4, 24, features=10, hidden=7, gamma=3.0, groups=groups, layer_norm=layer_norm).double()
    for parameter in encode.parameters():  # biases and LayerNorm start at 0 and 1, where a missing one would not show
        nn.init.normal_(parameter)
    weights = {name.removeprefix("encoder."): p.detach().numpy() for name, p in encode.named_parameters()}
    positions = torch.randn(11, 4, dtype=torch.float64) * 20

    def norm(z, which):
        if not layer_norm:
            return z
        z = (z - z.mean(-1, keepdims=True)) / ((z**2).mean(-1, keepdims=True) - z.mean(-1, keepdims=True) ** 2 + 1e-5) ** 0.5
        return z * weights[f"{which}.weight"] + weights[f"{which}.bias"]

    x = positions.numpy().reshape(11, groups, 4 // groups)
    angles = x @ weights["features.w_r"].T
    f = torch.cat([torch.from_numpy(angles).cos(), torch.from_numpy(angles).sin()], -1).numpy() / 10**0.5
    h = norm(f, "norm_1") @ weights["dense_1.weight"].T + weights["dense_1.bias"]
    h = h / 2 * (1 + erf(h / 2**0.5))
    y = norm(h, "norm_2") @ weights["dense_2.weight"].T + weights["dense_2.bias"]
    torch.testing.assert_close(encode(positions).detach(), torch.from_numpy(y.reshape(11, 24)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(2,), (5, 2), (2, 3, 2)])
def test_gradients_of_features_are_right_to_second_order(shape: tuple[int, ...], bias: bool) -> None:
    encode = FourierFeatures(2, 6, bias=bias).double()
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weights = dict(encode.named_parameters())

    def run(x, *values):
        return torch.func.functional_call(encode, dict(zip(weights, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x, *weights.values()), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(run, (x, *weights.values()))


def test_the_written_backward_is_the_one_autograd_finds() -> None:
    encode = FourierFeatures(3, 64, bias=True)
    x, grad = torch.randn(50, 3, requires_grad=True), torch.randn(50, 64)
    inputs = (x, encode.w_r, encode.bias)
    ours = torch.autograd.grad(encode(x), inputs, grad)
    found = torch.autograd.grad(fourier_features(*inputs), inputs, grad)
    torch.testing.assert_close(ours, found)


def test_gradcheck_of_the_whole_encoding() -> None:
    encode = LearnableFourier(4, 8, features=6, hidden=5, groups=2, layer_norm=True).double()
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    weights = dict(encode.named_parameters())

    def run(x, *values):
        return torch.func.functional_call(encode, dict(zip(weights, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x, *weights.values()))


def test_jacobians_and_vmap_work() -> None:
    encode, x = LearnableFourier(2, 8), torch.randn(5, 2)
    backward = torch.func.vmap(torch.func.jacrev(encode))(x)
    forward = torch.func.vmap(torch.func.jacfwd(encode))(x)
    assert backward.shape == (5, 8, 2)
    torch.testing.assert_close(forward, backward)


def test_fixed_features_are_saved_and_never_trained() -> None:
    encode = FourierFeatures(2, 8, learnable=False)
    assert not list(encode.parameters())
    assert set(encode.state_dict()) == {"w_r"}


def test_features_default_to_the_depth_of_a_group() -> None:
    for groups, features in ((1, 128), (2, 64), (4, 32)):
        encode = LearnableFourier(4, 128, groups=groups)
        assert encode.encoder.features.depth == features
        assert encode.encoder.features.w_r.shape == (features // 2, 4 // groups)


def test_an_encoding_holds_no_parameter_for_the_regulariser() -> None:
    counted = sum(p.numel() for p in LearnableFourier(2, 768, layer_norm=True).parameters())
    assert counted == 768 + 2 * 768 + (768 * 32 + 32) + 2 * 32 + (32 * 768 + 768)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": 7}, r"features must be a multiple of 2 .*got 7; the nearest is 6 or 8"),
        ({"features": 0}, r"features must be a whole number of at least 1, got 0"),
        ({"features": 3.5}, r"features must be a whole number of at least 1, got 3\.5"),
        ({"hidden": 0}, r"hidden must be a whole number of at least 1, got 0"),
        ({"gamma": 0.0}, r"gamma must be a positive finite number, got 0\.0"),
        ({"gamma": -1.0}, r"gamma must be a positive finite number, got -1\.0"),
        ({"gamma": math.nan}, r"gamma must be a positive finite number, got nan"),
        ({"gamma": math.inf}, r"gamma must be a positive finite number, got inf"),
        ({"groups": 3}, r"coords must be a multiple of 3 \(groups=3\), got 4"),
        ({"groups": 0}, r"groups must be a whole number of at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1\.0"),
        ({"dropout": -0.1}, r"dropout must be in \[0, 1\), got -0\.1"),
        ({"scale": 0.0}, r"scale must be a positive finite number, got 0\.0"),
    ],
)
def test_bad_arguments_name_themselves(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LearnableFourier(4, 24, **options)


@pytest.mark.plain
def test_bad_shapes_and_names_of_the_features_raise() -> None:
    with pytest.raises(ValueError, match=r"coords must be a whole number of at least 1, got 0"):
        FourierFeatures(0, 8)
    with pytest.raises(ValueError, match=r"depth must be a multiple of 4 \(groups=4\), got 30; the nearest is 28 or 32"):
        LearnableFourier(4, 30, groups=4)
    with pytest.raises(ValueError, match=r"init must be one of 'normal', 'uniform', got 'xavier'"):
        FourierFeatures(2, 8, init="xavier")
    with pytest.raises(ValueError, match=r"coords must be a whole number of at least 1, got True"):
        lff.Sine(True, 8)
