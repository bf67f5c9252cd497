"""The benchmark of the Reformer's step: all of it runs in small, keeps what it has, and what it costs follows from it."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from lff.experiments.bench.cost import costs

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: Smaller yet than --small, whose model takes a minute.
LEAST = {"size": 8, "width": 32, "head": 8, "layers": 1, "heads": 1, "chunk": 32, "buckets": 6}

#: The compiler looks at gradients of its own.
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture
def reformer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("reformer")
    monkeypatch.setattr(module, "SMALL", LEAST)
    return module


def _run(reformer: ModuleType, monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks/reformer.py", "--small", "--repeats", "1", *words])
    reformer.main()


def test_every_row_can_be_measured_and_is_in_the_record(
    reformer: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch._dynamo, "reset", lambda: None)  # one code for all cases is enough here
    file = tmp_path / "record.json"
    _run(reformer, monkeypatch, "--out", str(file))
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [row["failed"] for row in record["rows"]] == [None] * 13
    assert {row["batch"] for row in record["rows"]} == {1, 2, 4, 8}
    assert all(row["milliseconds"] > 0 for row in record["rows"])
    assert record["rows"][0]["what"] == reformer.BASE
    assert len(record["profiles"]) == 4
    for row in record["profiles"]:
        assert row["total"] == pytest.approx(row["products"] + row["sorting"] + row["elementwise"] + row["rest"])
        assert row["products"] > 0
    assert "| Embed-2D, ours, compiled, recomputed, 8 times the batch | 8 |" in capsys.readouterr().out


def test_a_run_that_is_cut_leaves_the_rows_before(reformer: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def cut(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reformer, "HOSTS", reformer.HOSTS[:1])
    monkeypatch.setattr(reformer, "methods", cut)
    file = tmp_path / "record.json"
    with pytest.raises(KeyboardInterrupt):
        _run(reformer, monkeypatch, "--out", str(file))
    assert [row["what"] for row in json.loads(file.read_text(encoding="utf-8"))["rows"]] == [reformer.BASE]


def test_a_lack_of_memory_is_a_row_that_says_so(reformer: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("tried to allocate 3 GiB")

    monkeypatch.setattr(reformer.Bench, "stepper", full)
    file = tmp_path / "record.json"
    _run(reformer, monkeypatch, "--only", "batches", "--out", str(file))
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert [row["memory"] for row in rows] == ["too little"] * 3
    assert rows[0]["failed"] == "OutOfMemoryError: tried to allocate 3 GiB"


def test_a_kernel_belongs_to_the_first_group_that_knows_it() -> None:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        group = importlib.import_module("reformer_profile").group
    finally:
        sys.path.remove(str(BENCHMARKS))
    assert group("nvjet_sm90_tst_256x128") == "products"
    assert group("void at::native::radixSortKVInPlace<...>") == "sorting"
    assert group("triton_poi_fused_gather_mul_3") == "sorting"
    assert group("void at::native::vectorized_elementwise_kernel<4, ...>") == "elementwise"
    assert group("something_else") == "rest"


def test_what_a_run_costs_is_in_proportion_to_the_fastest_step_that_fits() -> None:
    rows = [
        {"what": "Embed-2D, transformers", "batch": 8, "milliseconds": 1.0},
        {"what": "Embed-2D, ours, compiled", "batch": 8, "milliseconds": 80.0},
        {"what": "Embed-2D, ours, compiled, 2 times the batch", "batch": 16, "milliseconds": None},
        {"what": "Embed-2D, ours, compiled, recomputed, 4 times the batch", "batch": 32, "milliseconds": 640.0},
    ]
    one, eight, many = costs(rows)
    assert one["step"] == pytest.approx(2.56)
    assert one["hours"] == pytest.approx(256 / 3.6)
    assert eight["step"] == pytest.approx(0.32)
    assert many["step"] == pytest.approx(0.04)
    assert many["from"] == "Embed-2D, ours, compiled"
    assert many["days"] == pytest.approx(many["hours"] * 30 / 24)
    assert costs(rows[:1]) == []
