import math

import pytest
import torch

import lff
from lff import analysis
from lff.analysis import draw


def shown(picture: draw.Picture) -> bytes:
    png = picture._repr_png_()
    assert png.startswith(b"\x89PNG")
    return png


def test_maps_share_their_colours_and_mark_the_cell_they_are_seen_from_outside_of_them() -> None:
    at, cells = analysis.landmarks((12, 20)), lff.grid((12, 20))
    near, far = (analysis.similarity(lff.FourierFeatures(2, 64, gamma=g), cells, at) for g in (1.0, 9.0))
    picture = draw.maps({"Initial": near, "Trained": far}, at)
    panels = picture.axes[:10]
    assert {panel.images[0].get_clim() for panel in panels} == {(math.floor(10 * float(min(near.min(), far.min()))) / 10, 1.0)}
    assert [panel.get_title() for panel in panels[:5]] == list(draw.PLACES)
    assert [panels[i].get_ylabel() for i in (0, 5)] == ["Initial", "Trained"]
    for panel, values, place in zip(panels, [*near, *far], [*at, *at], strict=True):
        assert torch.equal(torch.as_tensor(panel.images[0].get_array()), values)
        assert [*panel.get_yticks(), *panel.get_xticks()] == place.tolist()
        assert not panel.lines  # nothing on the map
    shown(picture)


def test_the_scatter_has_a_point_a_frequency_and_the_histogram_every_weight() -> None:
    found = analysis.spectrum(lff.FourierFeatures(2, 64))
    points, weights = draw.spectra({"Initial": found}).axes
    assert torch.equal(torch.as_tensor(points.lines[-1].get_ydata()), found.w_r[:, 0])
    bars = torch.tensor([bar.get_height() * bar.get_width() for bar in weights.patches])
    assert float(bars.sum()) == pytest.approx(1)
    assert len(draw.spectra(analysis.spectrum(lff.FourierFeatures(1, 8))).axes) == 1  # one coordinate has no plane


def test_directions_that_do_not_fall_have_no_point() -> None:
    arms = (lff.grid((65, 65)) == 32).any(-1).float()
    cross = analysis.map_falloff(arms, torch.tensor([32, 32]), 31, directions=8)
    picture = draw.falloffs({"arms": cross})
    assert 0 < cross.half().isinf().sum() < 8
    half = torch.tensor(picture.axes[1].lines[0].get_ydata())
    assert half.isnan().tolist() == [*cross.half().isinf().tolist(), bool(cross.half()[0].isinf())]
    shown(picture)


def test_outside_positions_are_told_from_those_in_the_hull() -> None:
    found = analysis.hull(torch.tensor([[0, 0], [0, 4], [4, 0], [4, 4]]), torch.tensor([[1, 1], [9, 9], [8, 8]]))
    labels = [text.get_text() for text in draw.hull(found).axes[0].get_legend().get_texts()]
    assert labels[1:] == ["unseen positions, 1 in the hull", "unseen positions, 2 outside of it"]


def test_positions_are_counted_by_coordinate() -> None:
    boxes = torch.randint(100, (50, 4))
    panels = draw.positions(boxes).axes
    assert [panel.get_xlabel() for panel in panels] == ["top", "left", "bottom", "right"]
    low = int(boxes.min())
    for panel, values in zip(panels, boxes.T, strict=True):  # a bar for every number, those that do not occur among them
        assert [bar.get_height() for bar in panel.patches] == torch.bincount(
            values - low, minlength=int(boxes.max()) - low + 1
        ).tolist()
    assert [sum(bar.get_height() for bar in panel.patches) for panel in draw.positions(torch.rand(50, 4)).axes] == [50] * 4


def test_a_table_is_shown_as_a_matrix() -> None:
    rows = torch.randn(6, 8)
    everything = analysis.similarity(analysis.table(rows), lff.grid(6), lff.grid(6))
    torch.testing.assert_close(everything, torch.cosine_similarity(rows[:, None], rows[None], dim=-1))
    assert torch.equal(torch.as_tensor(draw.matrix(everything).axes[0].images[0].get_array()), everything)
