"""The benchmark of a head that looks at one cell after the other."""

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor

from lff.experiments.tasks.detection.batch import Batch
from lff.experiments.tasks.detection.kept import Drawn
from lff.experiments.tasks.detection.loss import Targets

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("detection_head")


@pytest.fixture
def mask() -> Tensor:
    """A map of 2 x 4 cells, and one of 3 x 2, with what is beside them."""
    there = torch.zeros(2, 3, 4, dtype=torch.bool)
    there[0, :2], there[1, :, :2] = True, True
    return there


def test_boxes_are_around_the_cells_that_they_come_from(bench: ModuleType, mask: Tensor) -> None:
    head = bench.Head(2, 5)
    torch.nn.init.zeros_(head.layers[-1].weight)
    torch.nn.init.zeros_(head.layers[-1].bias)
    _, boxes = head.maps(torch.randn(2, 192, 3, 4), mask)
    torch.testing.assert_close(boxes[0, :, 1, 3], torch.tensor([3.5 / 4, 1.5 / 2, 0.5, 0.5]))
    torch.testing.assert_close(boxes[1, :, 2, 0], torch.tensor([0.5 / 2, 2.5 / 3, 0.5, 0.5]))


def test_of_what_overlaps_the_likelier_is_kept_and_padding_is_nothing(bench: ModuleType) -> None:
    odds = torch.full((2, 1, 4), -torch.inf)
    odds[0, 0, :3] = torch.tensor([1.0, 2.0, 0.5])
    boxes = torch.tensor([[0.2, 0.5, 0.2, 0.2], [0.22, 0.5, 0.2, 0.2], [0.8, 0.5, 0.2, 0.2], [0.5, 0.5, 1.0, 1.0]]).T[:, None]
    logits, found = bench.Head(2, 3)._likeliest(odds, boxes)
    assert logits[:2, 0].tolist() == [2.0, 0.5]
    torch.testing.assert_close(found[:2], boxes[:, 0, [1, 2]].T)
    assert logits.softmax(-1)[2, :2].max() < 1e-20
    assert (logits[:2].argmax(-1) == 0).all()


def test_the_loss_wants_the_cell_of_the_centre_and_its_box(bench: ModuleType, mask: Tensor) -> None:
    wanted = torch.tensor([[[0.6, 0.3, 0.2, 0.4]], [[0.5, 0.5, 0.2, 0.2]]])  # in row 0, column 2; of the second picture none
    batch = Batch(torch.zeros(2, 192, 3, 4), mask, Targets(torch.ones(2, 1).long(), wanted, torch.tensor([[True], [False]])))
    task = SimpleNamespace(kept_training=SimpleNamespace(batch=lambda _: batch))
    drawn = Drawn(torch.arange(2), torch.rand(2, 8))

    def loss(row: int, column: int, box: Tensor) -> float:
        odds = torch.full((2, 2, 3, 4), -20.0)
        odds[0, 1, row, column] = 20.0
        boxes = torch.rand(2, 4, 3, 4)
        boxes[0, :, 0, 2] = box
        return bench.Cells.loss(task, SimpleNamespace(maps=lambda *_: (odds, boxes)), drawn).item()

    exact = wanted[0, 0]
    assert loss(0, 2, exact) == pytest.approx(0, abs=1e-5)
    assert loss(0, 1, exact) > 10
    assert loss(0, 2, exact + torch.tensor([0.1, 0, 0, 0])) > 0.5
