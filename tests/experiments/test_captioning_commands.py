"""`lff caption`, `lff score`, `lff positions`: on runs of a moment, and what they say to mistakes."""

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
import widget_folder
from PIL import Image

from lff.experiments import cli

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]
METHOD = "Learnable-Fourier+MLP-2/2(kl=1.0)"
SMALL = ("--preset", "tiny", "--device", "cpu", "--steps", "2", "--screens", "2", "--batch", "2", "--silent", "--method", METHOD)
RUN = "runs/Learnable-Fourier+MLP-2-of-2_kl=1.0--seed-0"

Lff = Callable[..., str]


def run(*words: str | Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["lff", *map(str, words)])
        cli.main()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    run("train", "captioning", *SMALL, "--out", folder)
    return folder


@pytest.fixture
def wrong(capsys: pytest.CaptureFixture[str]) -> Lff:
    def ended(*words: str | Path) -> str:
        with pytest.raises(SystemExit) as end:
            run(*words)
        assert end.value.code == 2
        return capsys.readouterr().err

    return ended


def screen(folder: Path, **changes: object) -> Path:
    packed = resources.files("lff.experiments.data").joinpath("rico/dev.jsonl.gz").read_bytes()
    content = json.loads(gzip.decompress(packed).splitlines()[0])
    (folder / "screen.json").write_text(json.dumps({**content, **changes}))
    return folder / "screen.json"


@pytest.mark.parametrize(("targets", "names"), [([2, 4], ["2", "4"]), (None, None)])
def test_a_screen_is_captioned_and_drawn(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], targets: list[int] | None, names: list[str] | None
) -> None:
    file = screen(tmp_path, targets=targets)
    run("caption", trained / RUN, file)
    *lines, last = capsys.readouterr().out.splitlines()
    numbers, named, texts = zip(*(line.split("\t") for line in lines), strict=True)
    pictured = [str(n) for n, e in enumerate(json.loads(file.read_text())["elements"]) if e[0] in ("PICTOGRAM", "IMAGE")]
    assert list(numbers) == [str(place) for place in range(1, len(lines) + 1)]  # as in the picture
    assert list(named) == (names or pictured)
    assert all(texts)
    assert last == f"The picture is {tmp_path / 'screen.captions.png'}"
    with Image.open(tmp_path / "screen.captions.png") as picture:
        assert len(picture.convert("L").getcolors() or range(300)) > 20  # something is drawn


def test_what_a_run_says_does_not_depend_on_the_hidden_captions(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for text in ("a red apple", ""):
        file = screen(tmp_path)
        content = json.loads(file.read_text())
        for number in content["targets"]:
            content["elements"][number][1] = text
        file.write_text(json.dumps(content))
        run("caption", trained / RUN, file)
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]


def test_a_view_hierarchy_is_captioned_by_a_run_on_widget_captioning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = widget_folder.make(tmp_path / "data", screens=6)
    words = ("--data", root, "--out", tmp_path / "out", "--pixels", "--dom", "--clickable", "--resource", "--gamma", "1", "50")
    run("train", "captioning", *SMALL, *words)
    capsys.readouterr()
    run("caption", tmp_path / "out" / RUN, root / "combined" / "100.json", "--out", tmp_path / "drawn.svg")
    first, _ = capsys.readouterr().out.splitlines()
    assert first.startswith("1\t0.2.0\t")  # the icon: it can be clicked and has no text; the button has some
    assert "<svg" in (tmp_path / "drawn.svg").read_text()


def test_mistakes_are_named(trained: Path, tmp_path: Path, wrong: Lff) -> None:
    file = screen(tmp_path)
    assert "config.json is missing; expected the folder of a finished run" in wrong("caption", tmp_path / "nowhere", file)
    assert "cannot read" in wrong("caption", trained / RUN, tmp_path / "nowhere.json")
    file.write_text("{")
    assert str(file) in wrong("caption", trained / RUN, file)
    file.write_text("[]")
    assert "must be a screen annotation or a view hierarchy" in wrong("caption", trained / RUN, file)
    file.write_text(json.dumps(widget_folder.hierarchy()))
    assert "is of another data set than the run" in wrong("caption", trained / RUN, file)
    assert "has nothing to caption" in wrong("caption", trained / RUN, screen(tmp_path, elements=[], targets=[]))
    assert "cannot draw" in wrong("caption", trained / RUN, screen(tmp_path), "--out", tmp_path / "x.nothing")
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "config.json").write_text('{"task": "captioning"}')
    assert "model.safetensors is missing; expected the folder of a finished run of captioning" in wrong(
        "caption", begun, screen(tmp_path)
    )
    (begun / "config.json").write_text('{"task": "classification"}')
    assert "must be a run of captioning, got one of classification" in wrong("caption", begun, screen(tmp_path))
    assert "compare.json" in wrong("score", tmp_path)


@pytest.mark.skipif(shutil.which("java") is None, reason="METEOR needs a Java runtime")
def test_score_adds_meteor_and_refuses_other_data(
    trained: Path, tmp_path: Path, wrong: Lff, capsys: pytest.CaptureFixture[str]
) -> None:
    run("score", trained)
    assert "METEOR" in capsys.readouterr().out
    final = json.loads((trained / RUN / "metrics.jsonl").read_text().splitlines()[-1])
    assert 0 <= final["meteor"] < 1
    other = widget_folder.make(tmp_path / "data")
    assert "was made from other data" in wrong("score", trained, "--data", other)


def test_positions_are_counted_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("positions", tmp_path / "out")
    said = capsys.readouterr().out
    assert "1,373 test widgets: 381 at seen positions, 992 at unseen ones" in said
    assert "978 of the unseen lie in the 4-D convex hull" in said
    assert json.loads((tmp_path / "out" / "positions.json").read_text())["unseen_in_hull"] == 978
    assert all("<svg" in (tmp_path / "out" / name).read_text() for name in ("histogram.svg", "hull.svg"))
