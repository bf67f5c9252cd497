"""Records of other machines name no folder of theirs once they are in results/."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_folders_in_commands_are_those_of_a_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    publish = importlib.import_module("publish").publish
    command = "python benchmarks/some.py --data /mine/coco --runs /mine/runs/some-pilot --out /mine/x.json --steps 3"
    (tmp_path / "some.json").write_text(json.dumps({"environment": {"command": command}, "rows": [{"mine": 0.5}]}))
    kept = json.loads(publish(tmp_path / "some.json", "some", tmp_path / "root").read_text())
    said = "python benchmarks/some.py --data DIR --runs runs/some-pilot --out results/benchmarks/some.json --steps 3"
    assert kept == {"environment": {"command": said}, "rows": [{"mine": 0.5}]}
