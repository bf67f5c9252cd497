import numpy as np
import pytest
import torch
from scipy import optimize

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


def mixed(point: np.ndarray, cloud: np.ndarray) -> bool:
    """By linear programming: whether the point is a mean of the cloud's points."""
    equal = np.vstack([cloud.T, np.ones(len(cloud))])
    return optimize.linprog(np.zeros(len(cloud)), A_eq=equal, b_eq=[*point, 1.0]).status == 0


@pytest.mark.parametrize("dims", [2, 4])
def test_the_hull_is_that_of_a_linear_programme(dims: int) -> None:
    generator = np.random.default_rng(dims)
    cloud, points = generator.integers(20, 80, (60, dims)), generator.integers(0, 100, (80, dims))
    points[:40] = (cloud[:40] + cloud[20:60]) // 2
    found = hull(torch.from_numpy(cloud), torch.from_numpy(points)).inside
    assert found.tolist() == [mixed(point, cloud) for point in points]
    assert 0 < found.sum() < len(points)


def test_the_plane_keeps_what_varies_most() -> None:
    cloud = torch.zeros(50, 4)
    cloud[:, [1, 3]] = torch.randint(100, (50, 2), generator=torch.Generator().manual_seed(0)).float()
    known = torch.unique(cloud, dim=0)
    flat = hull(cloud, cloud[:5]).known
    between, before = ((each[:, None] - each[None]).norm(dim=-1) for each in (flat, known))
    torch.testing.assert_close(between, before, rtol=1e-4, atol=1e-4)
