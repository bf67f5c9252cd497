import itertools
import json
import math
from pathlib import Path

import pytest

from lff.experiments.records import read

ABOUT = {
    "task": "classification",
    "preset": "tiny",
    "command": "lff compare classification --preset tiny",
    "methods": ["Embed-1D", "Sine-2D"],
    "seeds": [0, 1],
    "default": "Embed-1D",
    "measures": [{"key": "top1", "label": "Top-1, %", "scale": 100, "digits": 1, "larger": True}],
    "config": {"steps": 200},
}
LINES = [
    {"kind": "train", "step": 50, "loss": 2.0, "rate": 0.001, "norm": 1.0, "seconds": 1.0},
    {"kind": "evaluation", "step": 100, "top1": 0.2},
    {"kind": "evaluation", "step": 200, "top1": 0.3},
    {"kind": "final", "step": 200, "top1": 0.3, "encoding_parameters": 5},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "compare.json").write_text(json.dumps(ABOUT))
    add(tmp_path, "Sine-2D", 1)
    add(tmp_path, "Sine-2D", 0)
    add(tmp_path, "Embed-1D", 1)
    return tmp_path


def add(folder: Path, method: str, seed: int, text: str | None = None) -> Path:
    run = folder / "runs" / f"{method}--seed-{seed}"
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"method": method, "seed": seed, "grid": [4, 4]}))
    (run / "environment.json").write_text(json.dumps({"commit": "abc"}))
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES) if text is None else text)
    return run


def test_a_folder_is_read_in_the_order_of_methods_and_seeds(folder: Path) -> None:
    found = read(folder)
    assert [(run.method, run.seed) for run in found.runs] == [("Embed-1D", 1), ("Sine-2D", 0), ("Sine-2D", 1)]
    run = found.runs[0]
    assert (run.curve, run.training, run.final) == (LINES[1:3], LINES[:1], LINES[3])
    assert (run.config["grid"], run.environment, found.speed) == ([4, 4], {"commit": "abc"}, None)
    assert found.values("Sine-2D", "top1") == {0: 0.3, 1: 0.3}
    assert (found.measures[0].name, found.measures[0].unit) == ("Top-1", "%")


def test_a_line_that_is_being_written_is_ignored(folder: Path) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in LINES)
    cut = add(folder, "MLP", 0, lines[:-20])
    run = next(run for run in read(folder).runs if run.folder == cut)
    assert run.final is None
    assert run.curve == LINES[1:3]
    assert run.step == 200
    whole = add(folder, "MLP", 1, lines[:-1])  # complete but for its end
    assert next(run for run in read(folder).runs if run.folder == whole).final == LINES[3]


def test_a_run_that_has_not_measured_is_unfinished(folder: Path) -> None:
    (add(folder, "Embed-1D", 0) / "metrics.jsonl").unlink()
    run = read(folder).runs[0]
    assert (run.seed, run.step, run.final) == (0, 0, None)


def test_a_run_that_was_just_begun_is_no_error(folder: Path) -> None:
    before = len(read(folder).runs)
    add(folder, "Embed-1D", 7, "")
    (folder / "runs" / "Embed-1D--seed-7" / "environment.json").unlink()
    assert len(read(folder).runs) == before + 1
    (folder / "runs" / "Embed-1D--seed-7" / "config.json").unlink()
    assert len(read(folder).runs) == before


def test_another_method_can_be_compared_with(folder: Path) -> None:
    assert read(folder, "Sine-2D").default == "Sine-2D"
    with pytest.raises(ValueError, match=r"must be one of .*, got .Sine-3D."):
        read(folder, "Sine-3D")


def test_steps_that_a_resumed_run_repeats_count_once(folder: Path) -> None:
    again = [*LINES[:2], {**LINES[1], "top1": 0.25}, *LINES[2:]]
    add(folder, "Embed-1D", 0, "".join(json.dumps(line) + "\n" for line in again))
    assert read(folder).runs[0].points("top1") == {100: 0.25, 200: 0.3}


def test_the_final_evaluation_ends_the_curve(folder: Path) -> None:
    lines = [LINES[1], {**LINES[3], "step": 250, "top1": None}]
    add(folder, "Embed-1D", 0, "".join(json.dumps(line) + "\n" for line in lines))
    points = read(folder).runs[0].points("top1")
    assert points[100] == 0.2
    assert math.isnan(points[250])


RUN, DAMAGED = "runs/Sine-2D--seed-0", ["{", "[]", b"\xff\xfe"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("compare.json", None), *itertools.product(["compare.json", f"{RUN}/config.json", f"{RUN}/environment.json"], DAMAGED)],
)
def test_a_missing_or_damaged_file_is_named(folder: Path, name: str, content: str | bytes | None) -> None:
    file = folder / name
    file.unlink()
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=f"{name.replace('.', '[.]')} (is missing; expected|must be) a JSON object"):
        read(folder)


@pytest.mark.parametrize("line", ["{", "3", '{"step": 3}', '{"kind": "other", "step": 3}', '{"kind": "train", "step": "a"}'])
def test_a_damaged_line_is_named(folder: Path, line: str) -> None:
    add(folder, "MLP", 0, json.dumps(LINES[0]) + "\n" + line + "\n" + json.dumps(LINES[1]) + "\n")
    with pytest.raises(ValueError, match=r"MLP--seed-0/metrics.jsonl, line 2, must be an object with kind"):
        read(folder)
    add(folder, "MLP", 1, json.dumps(LINES[0]) + "\n" + line + "\n")  # the last, but it has an end: nobody is writing it
    (folder / "runs/MLP--seed-0/metrics.jsonl").unlink()
    with pytest.raises(ValueError, match=r"MLP--seed-1/metrics.jsonl, line 2"):
        read(folder)


def test_what_is_wrong_with_the_content_is_said(folder: Path) -> None:
    add(folder, "MLP", 0, json.dumps({"kind": "final", "step": 3, "loss": 1.0}) + "\n")
    with pytest.raises(ValueError, match=r"MLP--seed-0/metrics.jsonl must end with a final line that has 'top1'"):
        read(folder).values("MLP", "top1")
    for wrong, message in [([], "at least one measure, got none"), ([{"name": "top1"}], "measures with key, label")]:
        (folder / "compare.json").write_text(json.dumps({**ABOUT, "measures": wrong}))
        with pytest.raises(ValueError, match=message):
            read(folder)
    (folder / "compare.json").write_text(json.dumps(ABOUT))
    twin = add(folder, "Embed-1D", 0)
    (twin / "config.json").write_text(json.dumps({"method": "Embed-1D", "seed": 1}))
    with pytest.raises(ValueError, match=r"must have another method or seed than .*, got Embed-1D, seed 1, in both"):
        read(folder)
