import pytest
import torch

from lff.analysis import hull

SQUARE = torch.tensor([[0, 0], [0, 4], [4, 0], [4, 4], [2, 2], [2, 2]])


def test_inside_is_inside_and_the_border_belongs_to_it() -> None:
    found = hull(SQUARE, torch.tensor([[1, 3], [0, 2], [4, 4], [5, 2], [-1, -1]]))
    assert found.inside.tolist() == [True, True, True, False, False]


def test_the_outline_is_the_corners() -> None:
    found = hull(SQUARE, SQUARE)
    assert found.outline.shape == (4, 2)
    assert found.outline.norm(dim=-1).tolist() == pytest.approx([8**0.5] * 4)  # from the centre


def test_four_coordinates_are_judged_by_all_of_them() -> None:
    corners = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 4)
    asked = torch.full((5, 4), 0.5) + torch.cat([torch.zeros(1, 4), 0.6 * torch.eye(4)])
    assert hull(corners, asked).inside.tolist() == [True, False, False, False, False]


def test_a_flat_hull_is_judged_in_its_plane() -> None:
    flat = torch.nn.functional.pad(SQUARE.float(), (0, 2))  # two coordinates that never vary
    asked = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.1, 0.0], [9.0, 1.0, 0.0, 0.0]])
    assert hull(flat, asked).inside.tolist() == [True, False, False]


def test_a_line_has_no_hull() -> None:
    with pytest.raises(ValueError, match="span a plane at least, got 3 different ones of rank 1"):
        hull(torch.tensor([[0, 0], [1, 1], [2, 2]]), SQUARE)
