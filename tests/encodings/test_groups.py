import pytest
import torch

import lff


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_share_their_weights(groups: int) -> None:
    encode = lff.LearnableFourier(coords=4, depth=8 * groups, groups=groups)
    box = torch.rand(10, 4)
    turned = box.roll(4 // groups, dims=-1)
    torch.testing.assert_close(encode(turned), encode(box).roll(8, dims=-1))


def test_a_group_sees_its_own_coordinates_only() -> None:
    encode, box = lff.LearnableFourier(4, 16, groups=2), torch.rand(10, 4)
    moved = box.clone()
    moved[:, 2:] += 1
    corner, other = encode(box).chunk(2, dim=-1), encode(moved).chunk(2, dim=-1)
    torch.testing.assert_close(corner[0], other[0])
    assert not torch.allclose(corner[1], other[1])


def test_grouped_takes_any_encoder() -> None:
    encode, box = lff.Grouped(lff.Sine(2, 12), 2), torch.rand(10, 4)
    sine = lff.Sine(2, 12)
    torch.testing.assert_close(encode(box), torch.cat([sine(box[:, :2]), sine(box[:, 2:])], dim=-1))


def test_flattened_reads_the_cells_row_by_row() -> None:
    encode = lff.Flattened(lff.Sine(1, 16), (3, 5))
    torch.testing.assert_close(encode(lff.grid((3, 5))), lff.Sine(1, 16)(lff.grid(15)).reshape(3, 5, 16))


@pytest.mark.parametrize("outside", [(0.0, 5.0), (3.0, 0.0), (-1.0, 0.0), (0.5, 0.0)])
def test_flattened_refuses_a_cell_that_would_take_the_number_of_another(outside: tuple[float, float]) -> None:
    """Column 5 of a row of 5 has the number of the next row's first cell."""
    with pytest.raises(ValueError, match="positions must be whole numbers from 0 to"):
        lff.Flattened(lff.Sine(1, 16), (3, 5))(torch.tensor([outside]))


@pytest.mark.plain
def test_flattened_takes_encoders_of_one_coordinate_only() -> None:
    with pytest.raises(ValueError, match="encoder must take one coordinate, got one that takes 2"):
        lff.Flattened(lff.Sine(2, 16), (3, 5))
