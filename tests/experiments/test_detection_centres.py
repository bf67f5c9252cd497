"""The benchmark of what a detector knows of where things are."""

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lff.experiments.tasks.detection.batch import Batch
from lff.experiments.tasks.detection.loss import Targets

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("detection_centres")


def task(boxes: Tensor) -> Any:
    """Pictures of one box each, and before them one with two and one with none, which must not be asked for."""

    def judged(parts: Any, *_: Any) -> Any:
        for part in parts:
            assert part.min() >= 2
            wanted = boxes[part - 2][:, None]
            mask = torch.ones(len(part), 1, 1, dtype=torch.bool)
            yield Batch(part, mask, Targets(torch.zeros(len(part), 1).long(), wanted, torch.ones(len(part), 1, dtype=torch.bool)))

    offsets = np.array([0, 2, 2, *range(3, 3 + len(boxes))])
    kept = SimpleNamespace(judged=judged)
    return SimpleNamespace(
        test=SimpleNamespace(offsets=offsets), size=64, _judged=lambda _: kept, _inputs=lambda batch: batch.inputs
    )


def test_the_surest_box_counts_and_a_mirrored_one_is_known_as_such(bench: ModuleType) -> None:
    boxes = torch.rand(150, 4)

    def model(numbers: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        right = boxes[numbers - 2]
        right = torch.stack([1 - right[:, 0], right[:, 1], 0.5 * right[:, 2], torch.rand(len(right))], dim=1)
        logits = torch.tensor([[0.0, 0.0, 3.0], [2.0, 0.0, 0.0]]).expand(len(right), 2, 3)
        return logits[None], torch.stack([torch.rand_like(right), right], dim=1)[None]

    column, row, width, height = bench.followed(task(boxes), model)
    assert (column, row, width) == pytest.approx((-1, 1, 1), abs=1e-5)
    assert abs(height) < 0.3


def test_a_folder_without_runs_is_refused(bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr("sys.argv", ["detection_centres", "--data", str(tmp_path), "--runs", str(tmp_path)])
    with pytest.raises(SystemExit, match="must have finished runs of detection with their weights"):
        bench.main()
