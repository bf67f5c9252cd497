import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

import lff
from lff.encodings.modulated import GELU_POWER


def test_gelu_power_is_the_mean_square_of_gelu_on_a_standard_normal() -> None:
    density = lambda z: (z * stats.norm.cdf(z)) ** 2 * stats.norm.pdf(z)  # noqa: E731
    assert integrate.quad(density, -20, 20)[0] == pytest.approx(GELU_POWER, rel=1e-9)


@pytest.mark.parametrize(("layer_norm", "varying"), [(False, 0.9), (True, 1.0)])
def test_most_of_the_output_varies_with_the_position(layer_norm: bool, varying: float) -> None:
    draws = [_varying(lff.LearnableFourier(2, 768, layer_norm=layer_norm)) for _ in range(10)]
    assert np.mean(draws) == pytest.approx(varying, abs=0.05)


def test_pytorchs_own_initialisation_would_hardly_vary() -> None:
    encode = lff.LearnableFourier(2, 768)
    encode.encoder.dense_1.reset_parameters()
    encode.encoder.dense_2.reset_parameters()
    assert _varying(encode) == pytest.approx(0.004, rel=0.3)


def _varying(encode: lff.Encoding) -> float:
    out = encode(lff.grid((64, 64))).detach().reshape(4096, -1)
    return (out - out.mean(0)).square().mean().sqrt().item()


def test_dense_and_scaled_are_what_they_say() -> None:
    features, positions = lff.FourierFeatures(2, 8), torch.rand(5, 2)
    dense, scaled = lff.Dense(features, 3), lff.Scaled(features, scale=2.0)
    r_x = features(positions)
    torch.testing.assert_close(dense(positions), r_x @ dense.dense.weight.T + dense.dense.bias)
    torch.testing.assert_close(scaled(positions), r_x * scaled.factor)
    assert scaled.factor.item() == pytest.approx(2.0 * math.sqrt(16))
    assert scaled(positions).square().mean().sqrt().item() == pytest.approx(2.0)


def test_dropout_comes_after_the_activation() -> None:
    """With every hidden unit dropped only the last bias is left; dropped before GELU or after W_2 it would not be."""
    encode = lff.LearnableFourier(2, 6, dropout=0.2)
    torch.nn.init.normal_(encode.encoder.dense_2.bias)
    encode.encoder.dropout.p = 1.0
    torch.testing.assert_close(encode(torch.rand(4, 2)), encode.encoder.dense_2.bias.expand(4, 6))


@pytest.mark.plain
def test_features_without_power_cannot_be_scaled_up() -> None:
    with pytest.raises(ValueError, match=r"features\.rms must be a positive finite number, got 0\.0"):
        lff.Modulated(lff.Zero(2, 8), 8)
