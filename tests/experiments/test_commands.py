"""Mistakes of a user: a line or two, exit code 2, no traceback, nothing lost."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from lff.experiments import cli

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]
HERE = Path(__file__).parent


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `lff`, demands exit code 2, and gives what it said."""

    def run(*words: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["lff", *map(str, words)])
        monkeypatch.syspath_prepend(str(HERE))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 2, said
        assert "Traceback" not in said.err + said.out
        return said.err + said.out

    return run


def lff(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["lff", *map(str, words)])
    monkeypatch.syspath_prepend(str(HERE))
    cli.main()


def pictures(root: Path, classes: int = 2, count: int = 4) -> Path:
    for split in ("train", "val"):
        for label in range(classes):
            folder = root / split / f"class_{label}"
            folder.mkdir(parents=True)
            for number in range(count):
                Image.new("RGB", (32, 32), (40 * label, 10 * number, 0)).save(folder / f"{number}.png")
    return root


SMALL = (
    "--preset",
    "tiny",
    "--device",
    "cpu",
    "--batch",
    "2",
    "--steps",
    "2",
    "--develop",
    "1",
    "--image",
    "32",
    "--seeds",
    "1",
    "--workers",
    "1",
)


def test_a_wrong_method_is_answered_with_the_nearest(wrong: Callable[..., str], tmp_path: Path) -> None:
    said = wrong("compare", "--preset", "tiny", "--methods", "Embed-1D", "Learnable-Furier+MLP", "--out", tmp_path / "out")
    assert "no method 'Learnable-Furier+MLP'; perhaps you meant 'Learnable-Fourier+MLP'" in said
    assert not (tmp_path / "out").exists()


def test_a_wrong_task_preset_and_option_are_named(wrong: Callable[..., str]) -> None:
    assert "no task 'clasification'; perhaps you meant 'classification'" in wrong("compare", "clasification")
    assert "no preset 'mni' of classification; perhaps you meant 'mini'" in wrong("compare", "--preset", "mni")
    assert "--sedes" in wrong("compare", "--preset", "tiny", "--sedes", "3")
    assert "no module 'nowhere'" in wrong("compare", "nowhere:Task")
    assert "has no 'Tsk'" in wrong("compare", "toy:Tsk")


def test_a_range_of_gammas_that_begins_with_the_larger_is_refused(wrong: Callable[..., str], tmp_path: Path) -> None:
    said = wrong("train", *SMALL[:4], "--method", "Learnable-Fourier+MLP", "--gamma", "16", "1", "--out", tmp_path)
    assert "gamma must be a positive number or a pair of them, the smaller first, got (16.0, 1.0)" in said


def test_a_missing_folder_is_named(wrong: Callable[..., str], tmp_path: Path) -> None:
    assert f"no folder {tmp_path / 'none'}" in wrong("compare", *SMALL, "--data", tmp_path / "none", "--out", tmp_path / "out")


def test_an_empty_class_is_named(wrong: Callable[..., str], tmp_path: Path) -> None:
    root = pictures(tmp_path / "data")
    for file in (root / "train" / "class_1").iterdir():
        file.unlink()
    assert "no pictures of class class_1" in wrong("compare", *SMALL, "--data", root, "--out", tmp_path / "out")


@pytest.mark.parametrize("stream", [(), ("--stream", "--loaders", "0")], ids=["decoded once", "streamed"])
def test_a_corrupt_picture_is_named(
    wrong: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = pictures(tmp_path / "data")
    for number in range(4):
        (root / "train" / "class_0" / f"{number}.png").write_bytes(b"no picture")
    said = wrong("compare", *SMALL, *stream, "--data", root, "--out", tmp_path / "out")
    assert str(root / "train" / "class_0") in said


def test_the_crop_recipe_without_streaming_is_not_ignored(wrong: Callable[..., str], tmp_path: Path) -> None:
    assert "--crop cuts its parts out of the files: give --stream too" in wrong("compare", *SMALL, "--crop", "--out", tmp_path)


def test_a_full_disk_is_said_and_loses_nothing(
    wrong: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("train", "toy:Toy", "--method", "Embed-2D", "--device", "cpu", "--out", tmp_path)
    run = tmp_path / "runs" / "Embed-2D--seed-0"
    (run / "checkpoint").mkdir(parents=True)
    (run / "checkpoint" / "last.partial").symlink_to("/dev/full")
    said = wrong(*words)
    assert "No space left on device" in said
    assert "the same command goes on" in said
    (run / "checkpoint" / "last.partial").unlink()
    lff(monkeypatch, *words)
    assert (run / "metrics.jsonl").read_text().splitlines()[-1].startswith('{"kind": "final"')


def test_a_folder_of_another_config_is_refused_with_the_difference(
    wrong: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("compare", "toy:Toy", "--seeds", "1", "--workers", "1", "--device", "cpu", "--out", tmp_path)
    lff(monkeypatch, *words)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.jsonl")}
    assert "holds another comparison (rate: 0.01 -> 0.5)" in wrong(*words, "--rate", "0.5")
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.jsonl")} == before


def test_a_run_that_diverges_is_told_and_the_others_are_done(
    wrong: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = wrong(
        "compare",
        "toy:Toy",
        "--seeds",
        "1",
        "--workers",
        "1",
        "--rate",
        "1e30",
        "--clip",
        "0",
        "--device",
        "cpu",
        "--out",
        tmp_path,
    )
    assert "was not finite at step" in said
    assert (tmp_path / "report.html").exists()


def test_report_remakes_the_report_and_says_where_there_is_none(
    wrong: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lff(monkeypatch, "compare", "toy:Toy", "--seeds", "1", "--workers", "1", "--device", "cpu", "--out", tmp_path)
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    lff(monkeypatch, "report", tmp_path)
    assert (tmp_path / "report.html").read_bytes() == page
    assert "Embed-2D" in capsys.readouterr().out
    assert "compare.json" in wrong("report", tmp_path / "nowhere")


def test_speed_is_measured_for_every_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lff(monkeypatch, "compare", "toy:Toy", "--seeds", "1", "--workers", "1", "--device", "cpu", "--out", tmp_path)
    rows = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["Embed-2D", "Learnable-Fourier+MLP(gamma=4.0)"]
    assert all(seconds > 0 for row in rows for seconds in row["seconds"])


def test_help_lists_every_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--help",), ("compare", "--help"), ("train", "classification", "--preset", "mini", "--help")):
        monkeypatch.setattr(sys, "argv", ["lff", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
    said = capsys.readouterr().out
    for word in ("compare", "train", "report", "bench", "params", "--evaluate-every", "--workers", "--gamma", "--method"):
        assert word in said
    trained = said[said.rindex("usage: lff train") :]
    assert "--methods" not in trained
