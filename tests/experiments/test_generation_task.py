"""The task from its data to its pictures: what is trained, evaluated, kept and drawn."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from reformers import small

from lff.experiments import cli
from lff.experiments.engine import Engine, launch, world_of
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.task import World
from lff.experiments.tasks.generation.bits import bits, nats
from lff.experiments.tasks.generation.config import METHODS, GenerationConfig, mini, paper, tiny
from lff.experiments.tasks.generation.task import Generation

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]
QUICK: dict[str, Any] = {"batch": 2, "steps": 4, "warmup": 1, "evaluate_every": 2, "judged": 5, "size": 8, "chunk": 16}
WORDS = [f"--{key.replace('_', '-')}={value}" for key, value in QUICK.items()]


@pytest.fixture(scope="module")
def task() -> Generation:
    return Generation(small(**QUICK), None)


@pytest.fixture
def lff(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs `lff` and gives what it said, with its exit code before it where that is not 0."""

    def run(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["lff", *map(str, words)])
        code = ""
        try:
            cli.main()
        except SystemExit as ended:
            code = f"{ended.code}: "
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code + said.out + said.err

    return run


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_paper_trains(task: Generation, method: str) -> None:
    engine = Engine(task, parse(method), 0, launch("cpu", "32"))
    batches = engine.batches()
    before = {name: p.detach().clone() for name, p in engine.module.named_parameters()}
    for _ in range(2):
        engine.advance(batches)
    engine.check()
    still = {name for name, p in engine.module.named_parameters() if torch.equal(p, before[name])}
    assert still == set(), still
    assert 5 < engine.evaluate(task.evaluate)["bpd"] < 12


@pytest.mark.parametrize("host", ["kept", "recomputed"])
def test_runs_on_either_host_have_the_same_losses(host: Any) -> None:
    found = []
    for kind in ("transformers", host):
        task = Generation(small(**QUICK, host=kind), None)
        engine = Engine(task, parse("Learnable-Fourier+MLP"), 3, launch("cpu", "32"))
        batches = engine.batches()
        found.append([engine.advance(batches).item() for _ in range(3)])
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert len(set(found[0])) == 3


def test_evaluation_is_the_mean_over_the_first_pictures_however_they_are_shared(task: Generation) -> None:
    torch.manual_seed(0)
    model = task.model(parse("Embed-2D")).eval()
    ids = task.test.batch(torch.arange(5), torch.device("cpu"))
    wanted = sum(bits(nats(model(one), one).mean().item()) for one in ids.split(1)) / 5
    world = world_of(launch("cpu", "32"))
    with torch.no_grad():
        assert task.evaluate(model, world)["bpd"] == pytest.approx(wanted, abs=1e-5)
        parts: list[torch.Tensor] = []
        for rank in range(2):
            task.evaluate(model, World(rank, 2, world.device, lambda tensor: parts.append(tensor.clone()) or tensor))  # type: ignore[func-returns-value]
    assert bits(float(sum(parts)) / (5 * 64)) == pytest.approx(wanted, abs=1e-5)
    assert parts[0] > 0
    assert parts[1] > 0


def test_all_pictures_are_judged_where_no_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Generation(small(**{**QUICK, "judged": 0}), None)
    task.test.pixels = task.test.pixels[:7]
    seen: list[int] = []

    class Uniform(torch.nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            seen.append(len(ids))
            return torch.zeros(*ids.shape, 256)

    assert task.evaluate(Uniform(), world_of(launch("cpu", "32")))["bpd"] == pytest.approx(8.0, abs=1e-6)
    assert sum(seen) == 7


def test_a_run_that_was_stopped_ends_with_the_same_numbers(task: Generation) -> None:
    """The hashes are drawn anew in every step: their seeds must follow the step, not the process."""
    row, fabric = parse("Embed-2D"), launch("cpu", "32")
    whole = Engine(task, row, 0, fabric)
    batches = whole.batches()
    losses = [whole.advance(batches).item() for _ in range(4)]
    first = Engine(task, row, 0, fabric)
    batches = first.batches()
    for _ in range(2):
        first.advance(batches)
    state = first.state()
    torch.manual_seed(12345)
    second = Engine(task, row, 0, fabric)
    second.restore(state)
    batches = second.batches()
    assert [second.advance(batches).item() for _ in range(2)] == losses[2:]


def test_compare_train_and_generate_work_from_the_command_line(lff: Callable[..., str], tmp_path: Path) -> None:
    said = lff("compare", "generation", "--preset", "tiny", "--workers", 1, "--seeds", 1, "--out", tmp_path, *WORDS)
    assert "| Learnable-Fourier+MLP |" in said
    run = tmp_path / "runs" / "Learnable-Fourier+MLP--seed-0"
    about = json.loads((run / "config.json").read_text())
    assert (about["channels"], about["grid"], about["embedded"]) == (1, [8, 8], True)
    assert "The picture is" in lff("generate", run, "--samples", 2, "--completions", 3, "--temperature", 0.9, "--top-k", 50)
    with Image.open(run / "generated.png") as image:
        rows = 4 * (8 + 2) * 32 + 4 * 32  # samples, and three rows of completions, each with a heading
        assert image.size == (8 * 10 * 32, rows)
    page = (tmp_path / "report.html").read_text()
    assert page.count("Bits/dim over the training steps") == 1


def test_generate_says_what_is_missing(lff: Callable[..., str], tmp_path: Path) -> None:
    assert lff("generate", tmp_path).startswith("2: ")
    assert "config.json is missing; expected the folder of a finished run" in lff("generate", tmp_path)
    words = ("--preset", "tiny", "--out", tmp_path, *WORDS)
    lff("train", "generation", "--method", "Embed-2D", *words, "--no-keep")
    run = tmp_path / "runs" / "Embed-2D--seed-0"
    assert "model.safetensors is missing" in lff("generate", run)
    assert "must not be negative" in lff("generate", run, "--temperature", -1)
    assert "must be a picture" in lff("generate", run, "--samples", 0, "--completions", 0)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "task": "classification"}))
    (run / "checkpoint" / "model.safetensors").write_bytes(b"")
    assert "must be a run of generation, got one of classification" in lff("generate", run)
    (run / "config.json").write_text(json.dumps(config))
    assert "model.safetensors cannot be read" in lff("generate", run)


def test_pictures_of_a_folder_are_trained_on_and_completed(lff: Callable[..., str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for split in ("train", "val"):
        (tmp_path / "data" / split).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (20, 16), (80 * i, 30, 200)).save(tmp_path / "data" / split / f"{i}.png")
    out = tmp_path / "out"
    words = ("--preset", "tiny", "--out", out, "--data", tmp_path / "data", *WORDS)
    lff("train", "generation", "--method", "Sine-2D", *words)
    run = out / "runs" / "Sine-2D--seed-0"
    assert json.loads((run / "config.json").read_text())["channels"] == 3
    said = lff("generate", run, "--samples", 1, "--top-k", 1)
    assert "no completions" in said
    assert "The picture is" in said
    assert "no completions" not in lff("generate", run, "--samples", 0, "--completions", 1, "--data", tmp_path / "data")
    with Image.open(run / "generated.png") as image:
        assert image.getpixel((3, 40)) == (0, 30, 200)  # given
        assert image.getpixel((3, 32 + 9 * 32 - 40)) == (128, 128, 128)  # hidden
    (tmp_path / "data" / "train" / "1.png").write_bytes(b"broken")
    said = lff("train", "generation", "--method", "Embed-2D", *words)
    assert said.startswith("2: ")
    assert "1.png" in said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"chunk": 48}, "--chunk must divide the 64 tokens of a picture into two or more, got 48"),
        ({"chunk": 64}, "--chunk must divide"),
        ({"width": 40}, "--width must be a multiple of 16, got 40"),
        ({"buckets": 7}, "--buckets must be even, got 7"),
        ({"host": "transformers", "compile": "layers"}, "--host transformers cannot be compiled"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_training(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        Generation(small(**{**QUICK, **settings}), None)


def test_presets_are_what_the_task_says() -> None:
    for preset in Generation.presets.values():
        assert isinstance(preset(), GenerationConfig)
        assert preset.__doc__
        assert "lff compare generation" in preset.__doc__
    assert len(mini().methods) >= 7
    assert mini().seeds >= 3
    names = {method for methods in Generation.panels.values() for method in methods}
    assert names == set(mini().methods)
    assert tiny().steps <= 50


def test_the_papers_rate_is_that_of_trax() -> None:
    config = paper()
    for step in (1, 4000, 8000, 30_000, 100_000):
        wanted = 0.03125 * min(1.0, step / 8000) / max(step, 8000) ** 0.5
        assert config.rate_at(step - 1) == pytest.approx(wanted, rel=1e-9)


def test_the_papers_preset_trains_a_step_with_its_batch_and_picture_cut_down(tmp_path: Path) -> None:
    config = replace(paper(), batch=2, accumulate=2, steps=2, warmup=1, size=16, precision="32", compile="no", judged=1)
    task = Generation(config, None)
    engine = Engine(task, parse("Learnable-Fourier+MLP(kl=1.0)"), 0, launch("cpu", "32"))
    batches = engine.batches()
    assert 5 < engine.advance(batches).item() < 8
    engine.check()
