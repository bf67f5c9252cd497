import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import widget_folder

from lff.experiments import cli
from lff.experiments.engine import Engine, launch, world_of
from lff.experiments.folder import RunFolder
from lff.experiments.methods import parse
from lff.experiments.order import keys
from lff.experiments.records import read
from lff.experiments.task import Request
from lff.experiments.tasks.captioning import metrics, positions
from lff.experiments.tasks.captioning.config import METHODS, PAPER, CaptioningConfig, mini, paper, tiny
from lff.experiments.tasks.captioning.score import score
from lff.experiments.tasks.captioning.task import Captioning, shifted

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]
SMALL = replace(tiny(), screens=4, vocabulary=100, caption_length=6, batch=4)


@pytest.fixture(scope="module")
def task() -> Captioning:
    return Captioning(SMALL, None)


@pytest.mark.parametrize("method", METHODS)
def test_every_row_trains_and_only_its_encoding_differs(task: Captioning, method: str) -> None:
    engine = Engine(task, parse(method), 0, launch("cpu", "32"))
    torch.manual_seed(0)
    host = {name: p for name, p in task.model(parse("Embed-4D")).state_dict().items() if "position" not in name}
    before = {name: p.detach().clone() for name, p in engine.module.named_parameters()}
    mine = {name: p for name, p in before.items() if not name.startswith("position")}
    assert mine.keys() == host.keys()
    assert all(torch.equal(mine[name], host[name]) for name in host)
    batches = engine.batches()
    for _ in range(2):
        engine.advance(batches)
    engine.check()
    moved = {name for name, p in engine.module.named_parameters() if not torch.equal(p, before[name])}
    assert {name for name in before if name.startswith("position")} <= moved
    assert (engine.regularizer is not None) == ("kl=" in method)
    assert task.encoding_parameters(engine.module) == sum(p.numel() for n, p in before.items() if n.startswith("position"))


def test_batches_of_even_shapes_have_the_same_loss_and_gradients(task: Captioning) -> None:
    torch.manual_seed(0)
    model = task.model(parse("Learnable-Fourier+MLP-2/2")).eval()
    losses, grads, shapes = [], [], []
    for first in (0, 8):
        screens = torch.arange(first, first + 4)
        for even in (False, True):
            batch = task.train.batch(screens, torch.device("cpu"), keys(0, 0, 4), even=even)
            loss = task.loss(model, batch)
            losses.append(loss.item())
            grads.append(torch.autograd.grad(loss, list(model.parameters())))
            shapes.append((batch.types.shape, batch.captions.shape))
    assert shapes[1] == shapes[3]
    assert shapes[0] != shapes[2] != shapes[3]
    for plain in (0, 2):
        assert losses[plain + 1] == pytest.approx(losses[plain], rel=1e-5)
        for ours, theirs in zip(grads[plain + 1], grads[plain], strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_all_rows_of_the_papers_tables_are_there() -> None:
    published = Captioning.published(paper())
    assert set(PAPER) - set(published) == {"Learnable-Fourier+MLP-2/2(kl=1.0)"}
    assert set(published) <= set(PAPER)
    assert len(published) == 13
    for preset in Captioning.presets.values():
        assert isinstance(preset(), CaptioningConfig)
        assert preset.__doc__
        assert "lff compare captioning" in preset.__doc__
    assert set(mini().methods) >= {*PAPER, "none"}
    assert mini().seeds >= 3


def test_the_papers_schedule_is_that_of_the_public_code() -> None:
    config = paper()
    wanted = [128**-0.5 * min(1, s / 2000) / max(s, 2000) ** 0.5 for s in (1, 1000, 2000, 50_000)]
    assert [config.rate_at(s - 1) for s in (1, 1000, 2000, 50_000)] == pytest.approx(wanted, rel=1e-9)
    assert config.rate_at(1999) == pytest.approx(1.98e-3, rel=1e-2)


def test_a_word_is_asked_for_from_those_before_it_and_padding_is_not_asked_for(task: Captioning) -> None:
    assert shifted(torch.tensor([[7, 8, 1, 0]])).tolist() == [[3, 7, 8, 1]]
    model = task.model(parse("Sine-4D")).eval()
    batch = task.batch(Request(torch.arange(4), keys(0, 0, 4)), torch.device("cpu"))
    longer = batch._replace(captions=torch.nn.functional.pad(batch.captions, (0, 3)))
    torch.testing.assert_close(task.loss(model, longer), task.loss(model, batch))


def test_seen_and_unseen_scores_are_means_over_their_widgets(task: Captioning) -> None:
    torch.manual_seed(1)
    world = world_of(launch("cpu", "32"))
    with torch.no_grad():
        found = task.final(task.model(parse("Embed-4D")).eval(), world)
    seen = int(task.seen.sum())
    assert 0 < seen < len(task.references)
    mean = (seen * found["cider_seen"] + (len(task.seen) - seen) * found["cider_unseen"]) / len(task.seen)
    assert found["cider"] == pytest.approx(mean)
    known = {tuple(box) for box in positions.of_elements(task.source.split.train).tolist()}
    boxes = [s.elements[n].box for s in task.judged for n in s.targets]
    assert task.seen.tolist() == [box in known for box in boxes]
    captions = found["captions"]
    said = [captions["texts"][number] for number in captions["of_widgets"]]
    assert found["cider"] == pytest.approx(metrics.cider(said, task.references).mean())
    assert (found["meteor"], found["spice"]) == (None, None)


def test_processes_that_share_the_screens_find_the_same_captions(task: Captioning) -> None:
    model, whole = task.model(parse("Embed-4D")).eval(), world_of(launch("cpu", "32"))
    sums: list[list[torch.Tensor]] = []
    for rank in range(2):
        mine: list[torch.Tensor] = []
        sums.append(mine)
        with torch.no_grad():
            task._said(model, replace(whole, rank=rank, size=2, sum=lambda t, mine=mine: mine.append(t) or t))
    words, counts = (one + two for one, two in zip(*sums, strict=True))
    with torch.no_grad():
        said, loss = task._said(model, whole)
    assert [task.vocabulary.text(row) for row in words.tolist()] == said
    assert (counts[0] / counts[1]).item() == pytest.approx(loss)


def test_the_papers_model_trains_on_the_public_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = widget_folder.make(tmp_path / "data", screens=8)
    (tmp_path / "glove.txt").write_text("share 0.1 0.2\nplay 0.3 0.4\n")
    config = replace(paper(), batch=2, precision="32", glove=str(tmp_path / "glove.txt"))
    task = Captioning(config, root)
    engine = Engine(task, parse("Learnable-Fourier+MLP-4/1(kl=1.0)"), 0, launch("cpu", "32"))
    frozen = engine.module.words.table.clone()
    batches = engine.batches()
    losses = [engine.advance(batches).item() for _ in range(2)]
    engine.check()
    assert torch.equal(engine.module.words.table, frozen)
    assert losses[0] != losses[1]
    found = engine.evaluate(task.final)
    assert len(found["captions"]["of_widgets"]) == 2
    assert task.about()["samples"] == 6


def lff(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["lff", *map(str, words)])
    cli.main()


TINY = ("--preset", "tiny", "--device", "cpu", "--steps", "4", "--screens", "4", "--batch", "4", "--seeds", "1")


def test_a_comparison_says_what_is_missing_and_leaves_its_column_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None if name == "java" else which(name, *rest))
    lff(monkeypatch, "compare", "captioning", *TINY, "--workers", "1", "--out", tmp_path)
    said = capsys.readouterr()
    assert said.err.count("METEOR is not computed: it needs a Java runtime") == 1
    assert said.err.count("screens with nothing to caption, left out: 120") == 1
    heading, _, row = (line.split("|") for line in said.out.splitlines()[:3])
    assert row[[cell.strip() for cell in heading].index("METEOR ↑")].strip() == "–"
    monkeypatch.undo()
    run = tmp_path / "runs" / "Embed-4D--seed-0"
    assert {"model.safetensors", "encoding-final"} <= {file.name for file in (run / "checkpoint").iterdir()}


@pytest.mark.skipif(shutil.which("java") is None, reason="METEOR needs a Java runtime")
def test_meteor_is_added_to_finished_runs_once_and_nothing_else_changes(tmp_path: Path, task: Captioning) -> None:
    texts = [each[0] for each in task.references]
    final = {"kind": "final", "step": 4, "cider": 1.0, "meteor": None, "spice": None}
    for method, said in (("Embed-4D", texts), ("none", ["a"] * len(texts))):
        folder = RunFolder(tmp_path / "runs" / method, {"method": method, "seed": 0})
        folder.append({"kind": "evaluation", "step": 2, "cider": 0.5})
        folder.append(final | {"captions": {"texts": said, "of_widgets": list(range(len(said)))}})
    RunFolder(tmp_path / "runs" / "begun", {"method": "Sine-4D", "seed": 0}).append({"kind": "train", "step": 2})
    assert [run.name for run in score(tmp_path, task.references)] == ["Embed-4D", "none"]
    found = {}
    for method in ("Embed-4D", "none"):
        before, last = (json.loads(line) for line in (tmp_path / "runs" / method / "metrics.jsonl").read_text().splitlines())
        assert before == {"kind": "evaluation", "step": 2, "cider": 0.5}
        assert {key: last[key] for key in ("kind", "step", "cider")} == {"kind": "final", "step": 4, "cider": 1.0}
        found[method] = last["meteor"]
    assert found["Embed-4D"] > 0.8 > 0.2 > found["none"]
    assert score(tmp_path, task.references) == []


def test_a_measure_without_a_value_is_left_out_of_the_means(tmp_path: Path) -> None:
    measures = [{"key": k, "label": k, "scale": 1, "digits": 1, "larger": True} for k in ("cider", "meteor")]
    about = {"task": "captioning", "methods": ["none"], "seeds": [0, 1], "default": "none", "measures": measures}
    (tmp_path / "compare.json").write_text(json.dumps(about))
    for seed, (cider, meteor) in enumerate([(1.0, None), (None, 0.5)]):
        folder = RunFolder(tmp_path / "runs" / f"{seed}", {"method": "none", "seed": seed})
        folder.append({"kind": "final", "step": 1, "cider": cider, "meteor": meteor})
    found = read(tmp_path)
    assert found.values("none", "meteor") == {1: 0.5}
    assert list(found.values("none", "cider")) == [0, 1]  # the primary one shows that a run has none
