import numpy as np
import pytest
from scipy import optimize

from lff.experiments.tasks.captioning import positions, source


def mixed(point: np.ndarray, cloud: np.ndarray) -> bool:
    """By linear programming: whether the point is a mean of the cloud's points."""
    equal = np.vstack([cloud.T, np.ones(len(cloud))])
    return optimize.linprog(np.zeros(len(cloud)), A_eq=equal, b_eq=[*point, 1.0]).status == 0


@pytest.mark.parametrize("dims", [2, 4])
def test_the_hull_is_that_of_a_linear_programme(dims: int) -> None:
    generator = np.random.default_rng(dims)
    cloud, points = generator.integers(20, 80, (60, dims)), generator.integers(0, 100, (80, dims))
    points[:40] = (cloud[:40] + cloud[20:60]) // 2
    found = positions.inside(points, cloud)
    assert found.tolist() == [mixed(point, cloud) for point in points]
    assert 0 < found.sum() < len(points)


def test_corners_of_the_hull_are_inside_and_a_flat_cloud_has_a_hull_too() -> None:
    cloud = np.array([[0, 0, 0, 0], [10, 0, 0, 0], [0, 10, 0, 0], [10, 10, 0, 0]])
    assert positions.inside(cloud, cloud).all()
    assert positions.inside(np.array([[5, 5, 0, 0], [5, 5, 1, 0], [11, 0, 0, 0]]), cloud).tolist() == [True, False, False]


def test_a_position_is_seen_where_all_four_numbers_are_those_of_one_element() -> None:
    train = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    asked = np.array([[5, 6, 7, 8], [1, 2, 7, 8], [1, 2, 3, 4]])
    assert positions.seen(asked, train).tolist() == [True, False, True]


def test_the_plane_keeps_what_varies_most() -> None:
    generator = np.random.default_rng(0)
    cloud = np.zeros((50, 4), dtype=np.int64)
    cloud[:, [1, 3]] = generator.integers(0, 100, (50, 2))
    flat, same = positions.plane(cloud, cloud[:5])
    np.testing.assert_allclose(flat[:5], same)
    between = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.testing.assert_allclose(between, np.linalg.norm(cloud[:, None] - cloud[None], axis=-1), atol=1e-9)


def test_the_package_s_unseen_positions_are_nearly_all_inside() -> None:
    split = source.read(None, pixels=False, own_text=False).split
    found = positions.summary(split.train, split.test)
    assert (found["seen"], found["unseen"], found["unseen_in_hull"]) == (381, 992, 978)
    assert found["unseen_by_captioned"] > found["unseen"]
    assert positions.counts(positions.of_elements(split.train)).sum() == 4 * sum(len(s.elements) for s in split.train)
