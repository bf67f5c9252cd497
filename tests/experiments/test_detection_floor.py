"""The benchmark of a detector that gives every picture the same boxes."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from lff.experiments.tasks.detection.scenes import scenes

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def floor(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("detection_floor")


def test_of_a_single_picture_it_finds_everything(floor: ModuleType) -> None:
    pictures = scenes("train", 1)
    boxes = floor.boxes_of(pictures)
    assert len(boxes) == len(pictures.boxes)
    assert (boxes[:, 4] == 1).all()
    assert floor.judged(pictures, boxes)["ap50"] == pytest.approx(1.0)


def test_of_many_pictures_it_finds_little(floor: ModuleType) -> None:
    boxes = floor.boxes_of(scenes("train", 300))
    assert boxes.shape == (10 * floor.CENTRES, 6)
    assert ((boxes[:, 4] > 0) & (boxes[:, 4] < 0.2)).all()
    assert 0 < floor.judged(scenes("test", 100), boxes)["ap50"] < 0.1
