import math

import pytest
import torch
from torch import nn

import lff


def test_concat_joins_one_lookup_an_axis() -> None:
    encode = lff.Embed((3, 5), 8)
    rows, cols = encode.tables
    assert rows.shape == (3, 4)
    assert cols.shape == (5, 4)
    torch.testing.assert_close(encode(torch.tensor([2, 4])), torch.cat([rows[2], cols[4]]))


def test_sum_adds_one_lookup_an_axis() -> None:
    encode = lff.Embed((3, 5, 7, 9), 8, join="sum")
    assert [tuple(table.shape) for table in encode.tables] == [(3, 8), (5, 8), (7, 8), (9, 8)]
    expected = sum(table[i] for table, i in zip(encode.tables, (2, 0, 6, 8), strict=True))
    torch.testing.assert_close(encode(torch.tensor([2, 0, 6, 8])), expected)


def test_cell_has_one_row_for_every_cell_in_raster_order() -> None:
    encode = lff.Embed((3, 5), 8, join="cell")
    (table,) = encode.tables
    torch.testing.assert_close(encode(lff.grid((3, 5))).reshape(15, 8), table)


def test_one_axis_is_an_ordinary_embedding() -> None:
    encode, reference = lff.Embed(10, 8), nn.Embedding(10, 8)
    with torch.no_grad():
        reference.weight.copy_(encode.tables[0])
    positions = torch.tensor([3, 9, 0])
    assert torch.equal(encode(positions[:, None]), reference(positions))


@pytest.mark.plain
@pytest.mark.parametrize("join", ["concat", "sum", "cell"])
@pytest.mark.parametrize("bad", [(-1.0, 0.0), (3.0, 0.0), (0.0, 5.0), (0.5, 0.0), (math.nan, 0.0), (math.inf, 0.0), (0.0, 1e12)])
def test_a_table_never_clamps_rounds_or_wraps(join: str, bad: tuple[float, float]) -> None:
    encode = lff.Embed((3, 5), 8, join=join)
    with pytest.raises(ValueError, match=r"positions must be whole numbers from 0 to \[2, 4\] for extent \(3, 5\), got values"):
        encode(torch.tensor([[1.0, 1.0], bad]))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("extent", "message"),
    [
        ((math.nan, 3), r"extent\[0\] must be a whole number of at least 1, got nan"),
        (math.nan, r"extent\[0\] must be a whole number of at least 1, got nan"),
        ((3, 0), r"extent\[1\] must be a whole number of at least 1, got 0"),
        ((3, 4.0), r"extent\[1\] must be a whole number of at least 1, got 4\.0"),
        ((), r"extent must have at least one axis, got \(\)"),
        (None, r"extent\[0\] must be a whole number of at least 1, got None"),
    ],
)
def test_bad_extents_name_themselves(extent: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lff.Embed(extent, 8)


@pytest.mark.plain
def test_depth_and_join_are_checked() -> None:
    with pytest.raises(ValueError, match=r"depth must be a multiple of 2 \(one share an axis\), got 7"):
        lff.Embed((3, 5), 7)
    with pytest.raises(ValueError, match=r"join must be one of 'concat', 'sum', 'cell', got 'add'"):
        lff.Embed((3, 5), 8, join="add")
