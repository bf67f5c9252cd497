"""The benchmark of what a backbone's blocks know of places: its regression, its area under the curve, its cells."""

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from lff.experiments.tasks.detection.scenes import SIDE, scenes

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("backbone_places")


def test_a_linear_relation_is_found_and_noise_is_not(places: ModuleType) -> None:
    features, others = torch.randn(2000, 5), torch.randn(500, 5)
    relation = torch.randn(5, 2)
    found = places.fitted(features, features @ relation + 3, others)
    torch.testing.assert_close(found, (others @ relation + 3).double(), atol=0.1, rtol=0.0)
    assert places.fitted(features, torch.randn(2000, 1), others).std() < 0.2


def test_the_area_under_the_curve_by_hand(places: ModuleType) -> None:
    positive = torch.tensor([False, True, False, True])
    assert places.under_curve(torch.tensor([0.1, 0.9, 0.2, 0.8]), positive) == 1.0
    assert places.under_curve(torch.tensor([0.9, 0.1, 0.8, 0.2]), positive) == 0.0
    assert places.under_curve(torch.tensor([0.1, 0.4, 0.3, 0.2]), positive) == 0.75
    assert places.under_curve(torch.ones(4), positive) == 0.5


def test_cells_are_inside_where_the_boxes_are(places: ModuleType) -> None:
    pictures = scenes("train", 3)
    label = int(pictures.objects(2).labels[0])
    found = places.cells(places.Network().eval(), pictures, np.array([2]), SIDE, label)
    assert [block.shape for block in found.features] == [(16, n) for n in (16, 24, 40, 80, 112, 192, 320)]
    assert found.places[[0, 1, 4]].tolist() == [[0.125, 0.125], [0.125, 0.375], [0.375, 0.125]]
    objects = pictures.objects(2)
    for place, inside in zip((found.places * SIDE).tolist(), found.inside.tolist(), strict=True):
        boxes = objects.boxes[objects.labels == label].tolist()
        assert inside == any(x1 <= place[1] <= x2 and y1 <= place[0] <= y2 for x1, y1, x2, y2 in boxes)
    assert found.inside.any()
