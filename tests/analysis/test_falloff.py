import math

import pytest
import torch

import lff
from lff.analysis import falloff, features, map_falloff

CENTRE = torch.tensor([32.0, 32.0])
OFFSETS = lff.grid((65, 65)) - CENTRE


def test_a_ball_is_round_and_half_at_the_distance_of_its_width() -> None:
    ball = torch.exp(-OFFSETS.square().sum(-1) / (2 * 8.0**2))
    found = map_falloff(ball, CENTRE, 31)
    assert found.roundness() == pytest.approx(1, abs=0.005)
    torch.testing.assert_close(found.half(), torch.full((360,), 8 * math.sqrt(2 * math.log(2))), rtol=0.005, atol=0.0)


def test_a_cross_is_as_far_from_round_as_its_arms_are_long() -> None:
    long, short = 20.0, 5.0
    row, col = OFFSETS.square().unbind(-1)
    lying = torch.exp(-row / short**2 - col / long**2)
    found = map_falloff(torch.maximum(lying, lying.T), CENTRE, 31)
    arm = long * math.sqrt(math.log(2))
    diagonal = math.sqrt(2 * math.log(2) / (1 / long**2 + 1 / short**2))
    assert found.half()[[0, 90, 180, 270]].tolist() == pytest.approx([arm] * 4, rel=0.01)
    assert found.half()[[45, 135, 225, 315]].tolist() == pytest.approx([diagonal] * 4, rel=0.03)  # a valley, read between cells
    assert found.roundness() == pytest.approx(arm / diagonal, rel=0.03)


def test_arms_without_an_end_are_infinitely_far_from_round() -> None:
    row, col = torch.exp(-OFFSETS.square() / 50).unbind(-1)
    found = map_falloff(torch.maximum(row, col), CENTRE, 31)
    assert math.isinf(found.roundness())
    assert torch.isfinite(found.half()[45])


def test_what_never_falls_has_no_roundness() -> None:
    assert math.isnan(map_falloff(torch.ones(65, 65), CENTRE, 31).roundness())


def test_an_ellipse_has_its_axes_where_rows_and_columns_are() -> None:
    found = map_falloff(torch.exp(-(OFFSETS[..., 0] / 4).square() - (OFFSETS[..., 1] / 16).square()), CENTRE, 31)
    assert found.half()[0] == pytest.approx(16 * math.sqrt(math.log(2)), rel=0.01)  # along the columns
    assert found.half()[90] == pytest.approx(4 * math.sqrt(math.log(2)), rel=0.01)
    assert found.roundness() == pytest.approx(4, rel=0.02)


def test_rays_that_leave_the_map_are_unknown_there() -> None:
    found = map_falloff(torch.rand(65, 65), torch.tensor([2, 32]), 31)
    assert found.similarity[0].isfinite().all()
    assert found.similarity[270].isfinite().sum() == (found.distances <= 2).sum()


def test_fourier_features_see_a_ball_and_sines_a_cross() -> None:
    ball = falloff(lff.FourierFeatures(2, 2048, gamma=8.0), CENTRE, 31, directions=36)
    assert 1 < ball.roundness() < 1.15
    assert ball.half().mean() == pytest.approx(8 * math.sqrt(2 * math.log(2)), rel=0.05)
    cross = falloff(lff.Sine(2, 128), CENTRE, 31, directions=36)
    assert math.isnan(cross.roundness())  # long wavelengths stay similar over the whole picture
    assert cross.roundness(floor=cross.least) > 2 * ball.roundness(floor=ball.least)


def test_the_floor_is_what_counts_as_not_similar() -> None:
    ball = torch.exp(-OFFSETS.square().sum(-1) / (2 * 8.0**2))
    raised = map_falloff(0.6 + 0.4 * ball, CENTRE, 31)
    assert math.isnan(raised.roundness())
    torch.testing.assert_close(raised.half(floor=0.6), map_falloff(ball, CENTRE, 31).half())
    assert raised.least == pytest.approx(0.6, abs=0.001)


def test_an_encoding_and_its_map_agree() -> None:
    encode = lff.FourierFeatures(2, 64, gamma=8.0)
    whole = lff.analysis.similarity(encode, lff.grid((65, 65)), CENTRE[None])[0]
    exact, between = falloff(encode, CENTRE, 31, directions=24), map_falloff(whole, CENTRE, 31, directions=24)
    torch.testing.assert_close(between.similarity, exact.similarity, atol=0.005, rtol=0.0)


@pytest.mark.parametrize("name", ["Embed-1D", "Embed-2D", "Sine-1D", "Embed-2D+MLP"])
def test_tables_are_asked_at_their_cells_alone(name: str) -> None:
    encode = lff.build(name, coords=2, depth=32, extent=(9, 9))
    found = falloff(encode, torch.tensor([4, 4]), 4, directions=4, steps=4)
    along = lff.analysis.similarity(encode, torch.tensor([[4, 4], [4, 5], [4, 6], [4, 7], [4, 8]]), torch.tensor([[4, 4]]))
    torch.testing.assert_close(found.similarity[:1], along)


def test_the_mlp_is_taken_off_by_features() -> None:
    encode = lff.LearnableFourier(4, 64, groups=2, gamma=8.0)
    assert features(encode).coords == 2
    assert falloff(features(encode), CENTRE, 31, directions=8).roundness() < 3
    with pytest.raises(ValueError, match="2 coordinates to have directions, got one that takes 4"):
        falloff(encode, CENTRE, 31)
