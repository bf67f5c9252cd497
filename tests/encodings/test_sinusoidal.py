import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lff


@given(coords=st.integers(1, 5), per_axis=st.integers(1, 20), seed=st.integers(0, 2**31))
def test_sine_is_equation_1_on_every_axis(coords: int, per_axis: int, seed: int) -> None:
    torch.manual_seed(seed)
    depth, position = 2 * per_axis, (torch.rand(coords) * 1000).double()
    encoded = lff.Sine(coords, coords * depth).double()(position)
    expected = []
    for p in position.tolist():
        for d in range(per_axis):
            angle = p / 10000 ** (2 * d / depth)
            expected += [math.sin(angle), math.cos(angle)]
    torch.testing.assert_close(encoded, torch.tensor(expected, dtype=torch.float64), atol=1e-9, rtol=0.0)


def test_md_sine_is_the_appendix_s_equation() -> None:
    """d runs from 0 to D/2 - 1; the D/2 that the appendix prints would be one pair too many."""
    depth, (x, y) = 10, (37.0, 11.5)
    encoded = lff.MultiDimSine(2, depth).double()(torch.tensor([x, y], dtype=torch.float64))
    expected = []
    for d in range(depth // 2):
        angle = x / 10000 ** (2 * d / depth) + y / 5000 ** (2 * d / depth)
        expected += [math.sin(angle), math.cos(angle)]
    torch.testing.assert_close(encoded, torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=0.0)


def test_md_sine_halves_the_temperature_for_every_further_coordinate() -> None:
    for axis, temperature in enumerate((10000.0, 5000.0, 2500.0, 1250.0)):
        position = torch.zeros(4).double()
        position[axis] = 300.0
        one = lff.Sine(1, 16, temperature=temperature).double()(position[axis : axis + 1])
        torch.testing.assert_close(lff.MultiDimSine(4, 16).double()(position), one)


def test_similarity_of_sine_falls_off_as_a_cross() -> None:
    """A step along an axis leaves the other axis's half alone: more similar than a diagonal step of the same length."""
    encode = lff.Sine(2, 256)
    centre, along, diagonal = encode(torch.tensor([[32.0, 32.0], [32.0, 42.0], [32.0 + 50**0.5, 32.0 + 50**0.5]]))
    assert along @ centre > 1.05 * diagonal @ centre


def test_sine_of_normalised_mask_positions_is_detrs() -> None:
    """On the valid cells, against transformers' own module with a padded batch."""
    modeling = pytest.importorskip("transformers.models.detr.modeling_detr")
    mask = torch.zeros(2, 10, 13, dtype=torch.bool)
    mask[0, :7, :13] = mask[1, :10, :5] = True
    theirs = modeling.DetrSinePositionEmbedding(128, normalize=True)(
        shape=torch.Size((2, 8, 10, 13)), device=torch.device("cpu"), dtype=torch.float32, mask=mask
    )
    ours = lff.Sine(2, 256)(2 * math.pi * lff.grid_from_mask(mask, normalize=True, first=1))
    torch.testing.assert_close(ours[mask], theirs.permute(0, 2, 3, 1)[mask], atol=1e-4, rtol=0.0)


@pytest.mark.plain
def test_depths_that_do_not_split_raise_and_name_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"depth must be a multiple of 6 .*got 128; the nearest is 126 or 132"):
        lff.Sine(3, 128)
    with pytest.raises(ValueError, match=r"depth must be a multiple of 2 .*got 1; the nearest is 2"):
        lff.MultiDimSine(2, 1)
    with pytest.raises(ValueError, match=r"temperature must be a positive finite number, got -1"):
        lff.Sine(1, 8, temperature=-1)
