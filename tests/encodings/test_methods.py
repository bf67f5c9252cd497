"""The row names: every one that the paper's tables and figures print is there, and means what the paper says."""

import pytest
import torch

import lff

# Read off the paper, table by table, in its own spelling. "SOTA" is a citation whose encoding is Embed-4D.
PAPER = {
    "Figure 3, Reformer": ["Embed-1D", "Embed-2D", "Sine-1D", "Sine-2D", "Learnable-Fourier + MLP", "Learnable-Fourier", "MLP"],
    "Tables 1 and 2, DETR": ["Sine-2D", "Embed-2D", "MLP", "Learnable-Fourier+MLP"],
    "Section 4.3, ViT": ["Embed-1D", "Embed-2D", "Learnable-Fourier+MLP"],
    "Table 3, widget captioning": [
        *("Embed-4D", "MLP", "Sine-4D", "Learnable-Fourier-2/2"),
        *("Fixed-Fourier+MLP-1/4", "Fixed-Fourier+MLP-2/2", "Fixed-Fourier+MLP-4/1"),
        *("Learnable-Fourier+MLP-1/4", "Learnable-Fourier+MLP-2/2", "Learnable-Fourier+MLP-4/1"),
    ],
    "Appendix, MD-Sine": ["Transformer MD-Sine", "Transformer MD-Sine + MLP", "MD-Sine", "MD-Sine+MLP"],
    "Appendix, Sine-4D with an MLP": ["Sine-4D+MLP-1/4", "Sine-4D+MLP-2/2", "Sine-4D+MLP-4/1"],
    "Appendix, initialisation": ["Uniform [0, 1]", "Uniform [0, 1] & MLP", "N(0, 4^-2)", "N(0, 4^-2) & MLP"],
}


@pytest.mark.parametrize("name", [name for rows in PAPER.values() for name in rows])
def test_every_row_of_the_paper_is_built(name: str) -> None:
    coords = 4 if "/" in name or "4D" in name else 2
    encode = lff.build(name, coords=coords, depth=128, extent=(100,) * coords)
    assert encode(torch.zeros(3, coords)).shape == (3, 128)


def test_the_widget_captioning_table_has_its_thirteen_rows() -> None:
    rows = PAPER["Table 3, widget captioning"] + PAPER["Appendix, Sine-4D with an MLP"]
    assert len(rows) == 13
    assert set(rows) <= set(lff.METHODS)


@pytest.mark.parametrize(("name", "groups"), [("1/4", 1), ("2/2", 2), ("4/1", 4)])
def test_a_grouping_splits_depth_and_features_by_its_groups(name: str, groups: int) -> None:
    """|F| = 128, 64, 32 for 1/4, 2/2, 4/1 at depth 128."""
    for family in ("Learnable-Fourier+MLP", "Fixed-Fourier+MLP", "Sine-4D+MLP"):
        encode = lff.build(f"{family}-{name}", coords=4, depth=128)
        assert (encode.groups, encode.encoder.coords) == (groups, 4 // groups)
        assert encode.encoder.features.depth == encode.encoder.depth == 128 // groups


def test_rows_of_the_initialisation_table_start_from_what_they_name() -> None:
    uniform = lff.build("Uniform [0, 1] & MLP", coords=2, depth=2**14).encoder.features.w_r
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() <= 1
    normal = lff.build("N(0, 4^-2)", coords=2, depth=2**14).w_r
    assert normal.std().item() == pytest.approx(1 / 4, rel=0.02)


def test_embed_4d_sums_its_tables_and_embed_2d_concatenates() -> None:
    four = lff.build("Embed-4D", coords=4, depth=128, extent=(100,) * 4)
    assert [tuple(t.shape) for t in four.tables] == [(100, 128)] * 4
    two = lff.build("Embed-2D", coords=2, depth=768, extent=(64, 64))
    assert [tuple(t.shape) for t in two.tables] == [(64, 384)] * 2


def test_1d_rows_flatten_in_raster_order() -> None:
    grid = lff.grid((3, 5))
    table = lff.build("Embed-1D", coords=2, depth=8, extent=(3, 5))
    assert torch.equal(table(grid).reshape(15, 8), table.tables[0])
    sine = lff.build("Sine-1D", coords=2, depth=8, extent=(3, 5))
    torch.testing.assert_close(sine(grid).reshape(15, 8), lff.Sine(1, 8)(lff.grid(15)))
    assert isinstance(lff.build("Sine-1D", coords=1, depth=8), lff.Sine)


def test_options_reach_the_parts() -> None:
    encode = lff.build(
        "Fixed-Fourier+MLP-2/2", coords=4, depth=128, features=30, hidden=7, gamma=100.0, layer_norm=True, dropout=0.2
    )
    assert encode.encoder.features.w_r.shape == (15, 2)
    assert encode.encoder.features.gamma == 100.0
    assert encode.encoder.dense_1.out_features == 7
    assert encode.encoder.dropout.p == 0.2
    assert isinstance(encode.encoder.norm_1, torch.nn.LayerNorm)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "Lernable-Fourier+MLP"}, r"got 'Lernable-Fourier\+MLP'; perhaps you meant 'Learnable-Fourier\+MLP'"),
        ({"name": "Sine-2D", "coords": 3}, r"coords must be 2 for 'Sine-2D', got 3"),
        ({"name": "Learnable-Fourier+MLP-2/2"}, r"coords must be 4 for 'Learnable-Fourier\+MLP-2/2', got 2"),
        ({"name": "Embed-2D"}, r"extent must be given: .* got None"),
        ({"name": "Sine-1D"}, r"extent must be given: .* got None"),
        ({"name": "Embed-2D", "extent": (3, 4, 5)}, r"extent must have 2 axes, one a coordinate, got \(3, 4, 5\)"),
        ({"name": "Embed-2D", "extent": (3, float("nan"))}, r"extent\[1\] must be a whole number of at least 1, got nan"),
        ({"name": "Fixed-Fourier+MLP", "features": 0}, r"features must be a whole number of at least 1, got 0"),
    ],
)
def test_a_wrong_request_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lff.build(**{"coords": 2, "depth": 16, **arguments})


@pytest.mark.plain
def test_an_option_that_a_method_does_not_have_is_not_swallowed() -> None:
    with pytest.raises(TypeError, match="hidden"):
        lff.build("Sine-2D", coords=2, depth=16, hidden=3)
