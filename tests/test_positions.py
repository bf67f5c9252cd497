import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import lff
from lff.positions import cells, raster


@given(size=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_grid_holds_the_index_of_every_cell(size: list[int]) -> None:
    grid = lff.grid(size)
    assert grid.dtype == torch.float32
    assert grid.shape == (*size, len(size))
    for index in torch.cartesian_prod(*(torch.arange(n) for n in size)).reshape(-1, len(size)).tolist():
        assert grid[tuple(index)].tolist() == index


def test_one_number_is_a_grid_in_one_dimension() -> None:
    assert torch.equal(lff.grid(4), torch.tensor([[0.0], [1.0], [2.0], [3.0]]))


@given(size=st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_a_normalised_grid_is_open_symmetric_and_free_of_resolution(size: list[int]) -> None:
    grid = lff.grid(size, normalize=True)
    assert ((grid > 0) & (grid < 1)).all()
    torch.testing.assert_close(grid.flip(list(range(len(size)))), 1 - grid)
    finer = lff.grid([3 * n for n in size], normalize=True)
    torch.testing.assert_close(finer[tuple(slice(1, None, 3) for _ in size)], grid)  # the middle cell of each three


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("first", [None, 0.0, 1.0])
def test_without_padding_a_mask_gives_the_grid(normalize: bool, first: float | None) -> None:
    mask = torch.ones(2, 3, 5, dtype=torch.bool)
    expected = lff.grid((3, 5), normalize=normalize, first=first)
    torch.testing.assert_close(lff.grid_from_mask(mask, normalize=normalize, first=first), expected.expand(2, 3, 5, 2))


@pytest.mark.parametrize("normalize", [False, True])
def test_padding_does_not_move_an_image(normalize: bool) -> None:
    mask = torch.zeros(6, 9, dtype=torch.bool)
    mask[2:5, 3:8] = True
    padded = lff.grid_from_mask(mask, normalize=normalize)
    torch.testing.assert_close(padded[2:5, 3:8], lff.grid((3, 5), normalize=normalize))
    assert padded.isfinite().all()
    assert (padded >= 0).all()
    assert (padded[..., 0] < 3).all()
    assert (padded[..., 1] < 5).all()


def test_padded_sequences_and_videos_are_counted_too() -> None:
    words = torch.tensor([[True, True, True, False], [False, True, True, True]])
    assert lff.grid_from_mask(words, dims=1)[..., 0].tolist() == [[0, 1, 2, 2], [0, 0, 1, 2]]
    frames = torch.ones(2, 3, 4, 5, dtype=torch.bool)
    torch.testing.assert_close(lff.grid_from_mask(frames, dims=3), lff.grid((3, 4, 5)).expand(2, 3, 4, 5, 3))


def test_an_image_that_is_all_padding_has_finite_positions() -> None:
    assert lff.grid_from_mask(torch.zeros(2, 3, dtype=torch.bool), normalize=True).isfinite().all()


def test_points_and_corners_are_turned_from_xy_to_row_col() -> None:
    assert lff.from_xy(torch.tensor([10, 20])).tolist() == [20, 10]
    assert lff.from_xy(torch.tensor([1, 2, 3, 4])).tolist() == [2, 1, 4, 3]


def test_box_formats_agree_with_each_other() -> None:
    expected = torch.tensor([20.0, 10.0, 60.0, 40.0])  # top, left, bottom, right
    torch.testing.assert_close(lff.boxes(torch.tensor([10, 20, 40, 60])), expected)
    torch.testing.assert_close(lff.boxes(torch.tensor([10, 20, 30, 40]), format="xywh"), expected)
    torch.testing.assert_close(lff.boxes(torch.tensor([25, 40, 30, 40]), format="cxcywh"), expected)


def test_boxes_are_divided_by_height_and_width_of_their_own_image() -> None:
    boxes = torch.tensor([[10, 20, 40, 60], [10, 20, 40, 60]])
    one = lff.boxes(boxes, size=(100, 50))
    torch.testing.assert_close(one[0], torch.tensor([0.2, 0.2, 0.6, 0.8]))
    each = lff.boxes(boxes, size=torch.tensor([[100, 50], [200, 40]]))
    torch.testing.assert_close(each, torch.tensor([[0.2, 0.2, 0.6, 0.8], [0.1, 0.25, 0.3, 1.0]]))


@given(hnp.array_shapes(max_dims=3, max_side=4), st.integers(0, 2**31))
def test_boxes_of_any_batch_shape_survive_a_round_trip(batch: tuple[int, ...], seed: int) -> None:
    torch.manual_seed(seed)
    start, extent = torch.rand(2, *batch, 2)
    boxes = lff.boxes(torch.cat([start, extent], -1), format="xywh")
    torch.testing.assert_close(lff.from_xy(boxes), torch.cat([start, start + extent], -1))


@given(old=st.integers(1, 40), new=st.integers(1, 40))
def test_rescaling_keeps_places_in_the_picture(old: int, new: int) -> None:
    inside = lff.rescale(lff.grid(old), (old,), (new,))
    torch.testing.assert_close((inside + 0.5) / new, lff.grid(old, normalize=True))
    assert ((inside >= -0.5) & (inside <= new - 0.5)).all()


@given(old=st.integers(2, 40), new=st.integers(1, 40))
def test_rescaling_by_corners_fills_the_trained_cells_exactly(old: int, new: int) -> None:
    inside = lff.rescale(lff.grid(old), (old,), (new,), align="corners")
    assert inside[0].item() == 0
    assert inside[-1].item() == new - 1


def test_rescaling_works_axis_by_axis() -> None:
    inside = lff.rescale(lff.grid((24, 8)), (24, 8), (16, 16))
    torch.testing.assert_close(inside[..., 0], lff.rescale(lff.grid(24), (24,), (16,)).expand(24, 8))
    torch.testing.assert_close(inside[..., 1], lff.rescale(lff.grid(8), (8,), (16,)).reshape(1, 8).expand(24, 8))


def test_raster_numbers_cells_as_reshape_does() -> None:
    assert raster(lff.grid((2, 3, 4)), (2, 3, 4)).flatten().tolist() == list(range(24))


def test_cells_are_exact_for_large_integers() -> None:
    far = torch.tensor([2**40])
    assert cells(far, (2**40 + 1,)).item() == 2**40


@pytest.mark.plain
def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"size\[1\] must be a whole number of at least 1, got 0"):
        lff.grid((3, 0))
    with pytest.raises(ValueError, match=r"first must be a finite number, got nan"):
        lff.grid(3, first=math.nan)
    with pytest.raises(ValueError, match=r"mask must be a bool tensor with at least dims=2 axes, got torch.float32 \(2, 3\)"):
        lff.grid_from_mask(torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"mask must be a bool tensor .* got torch.bool \(3,\)"):
        lff.grid_from_mask(torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"points must hold pairs \(x, y\) on the last axis, got shape \(3,\)"):
        lff.from_xy(torch.ones(3))
    with pytest.raises(ValueError, match=r"boxes must have shape \[\.\.\., 4\], got \(2, 5\)"):
        lff.boxes(torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"format must be one of 'xyxy', 'xywh', 'cxcywh', got 'yxyx'"):
        lff.boxes(torch.ones(2, 4), format="yxyx")
    with pytest.raises(ValueError, match=r"boxes must end after they start; is their format really 'xyxy'\? got"):
        lff.boxes(torch.tensor([100, 100, 20, 20]))
    with pytest.raises(ValueError, match=r"size must be a positive \(height, width\), got \(0, 5\)"):
        lff.boxes(torch.tensor([0, 0, 2, 2]), size=(0, 5))
    with pytest.raises(ValueError, match=r"size and to must have 2 axes, as positions do, got \(3,\) and \(3, 3\)"):
        lff.rescale(lff.grid((3, 3)), (3,), (3, 3))
    with pytest.raises(ValueError, match=r"align must be one of 'centers', 'corners', got 'edges'"):
        lff.rescale(lff.grid((3, 3)), (3, 3), (3, 3), align="edges")
