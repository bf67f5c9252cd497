import math

import pytest
import torch

import lff
from lff.analysis import spectrum


def test_it_is_w_r_and_no_view_of_it() -> None:
    encode = lff.LearnableFourier(4, 64, groups=2, gamma=4.0)
    found = spectrum(encode)
    w_r = encode.encoder.features.w_r
    assert torch.equal(found.w_r, w_r)
    with torch.no_grad():
        w_r.zero_()
    assert found.w_r.any()


@pytest.mark.parametrize("gamma", [0.5, 4.0])
def test_its_spread_is_one_over_gamma(gamma: float) -> None:
    found = spectrum(lff.FourierFeatures(2, 2**14, gamma=gamma))
    assert found.std == pytest.approx(1 / gamma, rel=0.02)
    assert abs(found.mean) < 0.05 / gamma
    assert found.stretch == pytest.approx(1, abs=0.05)


def test_stretch_is_the_ratio_of_the_axes_of_the_ball_near_its_centre() -> None:
    encode = lff.FourierFeatures(2, 256).double()
    with torch.no_grad():
        encode.w_r[:, 0] *= 3
    step = 1e-3
    fallen = 1 - lff.analysis.similarity(encode, step * torch.eye(2).double(), torch.zeros(1, 2).double())[0]
    assert spectrum(encode).stretch == pytest.approx(math.sqrt(fallen.max() / fallen.min()), rel=0.05)


def test_a_wavelength_takes_a_feature_back_to_where_it_was() -> None:
    encode = lff.FourierFeatures(2, 2)
    found = spectrum(encode)
    step = found.wavelengths * found.w_r[0] / found.w_r[0].norm()
    torch.testing.assert_close(encode(step), encode(torch.zeros(2)), atol=1e-5, rtol=0.0)


def test_sines_have_none() -> None:
    with pytest.raises(ValueError, match="must have Fourier features, got a Sine with Sine"):
        spectrum(lff.Sine(2, 8))
