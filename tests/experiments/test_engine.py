import importlib
import json
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy import Toy, demo

from lff.experiments.config import Config
from lff.experiments.display import Display
from lff.experiments.engine import Engine, launch, processes
from lff.experiments.fabric import Fabric
from lff.experiments.folder import RunFolder
from lff.experiments.methods import parse
from lff.experiments.problems import Diverged, Problem
from lff.experiments.training import Stopped, run_config, train

OURS = "Learnable-Fourier+MLP(gamma=4.0)"


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    return launch("cpu", "32")


def folder_of(task: Toy, path: Path, method: str = OURS, seed: int = 0) -> RunFolder:
    return RunFolder(path, run_config(task, "toy", parse(method), seed))


def run(path: Path, fabric: Fabric, config: Config | None = None, *, method: str = OURS, seed: int = 0) -> Engine:
    task = Toy(config or demo(), None)
    engine = Engine(task, parse(method), seed, fabric)
    train(engine, folder_of(task, path, method, seed), Display("toy", silent=True))
    return engine


def lines(path: Path) -> list[dict[str, Any]]:
    """What a run found, without how long it took."""
    found = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in found]


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, (1, 1)),
        ({"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8"}, (16, 8)),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, (8, 4)),
        ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "3"}, (3, 3)),
        ({"SLURM_NTASKS": "8"}, (1, 1)),  # a job's script, not a step
    ],
)
def test_processes_are_those_that_were_started_together(variables: dict[str, str], wanted: tuple[int, int]) -> None:
    assert processes(variables) == wanted


def test_a_run_leaves_the_files_that_a_report_reads(tmp_path: Path, fabric: Fabric) -> None:
    run(tmp_path, fabric)
    found = lines(tmp_path)
    assert [line["step"] for line in found if line["kind"] == "train"] == list(range(1, 31))
    assert [line["step"] for line in found if line["kind"] == "evaluation"] == [10, 20]
    assert found[-1]["kind"] == "final"
    assert found[-1]["error"] < lines(tmp_path)[10]["error"]  # it learns
    assert {"command", "commit", "versions", "device", "seeds"} <= json.loads((tmp_path / "environment.json").read_text()).keys()
    for when in ("initial", "final"):
        assert (tmp_path / "checkpoint" / f"encoding-{when}" / "config.json").exists()
    assert not (tmp_path / "checkpoint" / "last.pt").exists()  # a finished run does not go on


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path: Path, fabric: Fabric) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(tmp_path / name, fabric, seed=seed)
    assert lines(tmp_path / "a") == lines(tmp_path / "b")
    assert lines(tmp_path / "a") != lines(tmp_path / "c")


def test_methods_of_one_seed_share_the_host_and_the_data(fabric: Fabric) -> None:
    engines = [Engine(Toy(demo(), None), parse(method), 3, fabric) for method in ("Embed-2D", OURS)]
    torch.testing.assert_close(engines[0].module[2].weight, engines[1].module[2].weight, rtol=0, atol=0)
    for engine in engines:
        batches = engine.batches()
        for _ in range(5):
            engine.advance(batches)
    for one, other in zip(engines[0].task.asked, engines[1].task.asked, strict=True):
        assert one.indices.tolist() == other.indices.tolist()
        assert one.keys.tolist() == other.keys.tolist()


@pytest.mark.parametrize("stop", [7, 10, 23])
def test_a_run_that_is_told_to_stop_ends_with_the_same_numbers(tmp_path: Path, fabric: Fabric, stop: int) -> None:
    run(tmp_path / "whole", fabric)
    task = Toy(demo(), None)
    engine = Engine(task, parse(OURS), 0, fabric)
    advance, steps = engine.advance, []

    def told(batches: Any) -> torch.Tensor:
        import os
        import signal

        steps.append(1)
        if len(steps) == stop:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(batches)

    engine.advance = told  # type: ignore[method-assign]
    with pytest.raises(Stopped, match=f"stopped at step {stop} of 30"):
        train(engine, folder_of(task, tmp_path / "cut"), Display("toy", silent=True))
    run(tmp_path / "cut", fabric)
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")
    assert json.loads((tmp_path / "cut" / "environment.json").read_text())["resumed"][0]["step"] == stop


def test_what_was_written_after_the_last_checkpoint_is_cut_off_and_written_again(tmp_path: Path, fabric: Fabric) -> None:
    run(tmp_path / "whole", fabric)
    task = Toy(demo(), None)
    engine = Engine(task, parse(OURS), 0, fabric)
    advance = engine.advance

    def dies(batches: Any) -> torch.Tensor:
        if engine.step == 17:
            raise MemoryError
        return advance(batches)

    engine.advance = dies  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        train(engine, folder_of(task, tmp_path / "cut"), Display("toy", silent=True))
    assert lines(tmp_path / "cut")[-1]["step"] == 17
    with (tmp_path / "cut" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "tra')  # as a killed process leaves it
    run(tmp_path / "cut", fabric)
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_state_before_it(tmp_path: Path, fabric: Fabric) -> None:
    config = replace(demo(), log_every=10)
    task, same = Toy(config, None), Toy(config, None)
    task.spoil = 13
    engine, reference = (Engine(each, parse(OURS), 0, fabric) for each in (task, same))
    with pytest.raises(Diverged, match="not finite at step 13"):
        train(engine, folder_of(task, tmp_path), Display("toy", silent=True))
    failure = json.loads((tmp_path / "failure.json").read_text())
    assert failure["step"] == 13
    assert failure["samples"] == task.asked[13].indices.tolist()
    kept = torch.load(tmp_path / "failure.pt", weights_only=True)
    batches = reference.batches()
    for _ in range(13):
        reference.advance(batches)
    for key, weight in reference.module.state_dict().items():
        torch.testing.assert_close(kept["model"][key], weight, rtol=0, atol=0)
    assert (tmp_path / "checkpoint" / "last.pt").exists()


def test_a_folder_of_another_config_is_refused_with_the_difference(tmp_path: Path, fabric: Fabric) -> None:
    run(tmp_path, fabric)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(Problem, match=r"rate: 0\.01 -> 0\.5"):
        run(tmp_path, fabric, replace(demo(), rate=0.5))
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_accumulated_parts_follow_the_whole_batch(tmp_path: Path, fabric: Fabric) -> None:
    class Steady(Toy):
        def model(self, row: Any) -> torch.nn.Module:
            return super().model(row).eval()

    def losses(parts: int) -> list[float]:
        task = Steady(replace(demo(), accumulate=parts), None)
        engine = Engine(task, parse(OURS), 0, fabric)
        for module in engine.module.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        batches = engine.batches()
        return [engine.advance(batches).item() for _ in range(20)]

    assert losses(4) == pytest.approx(losses(1), abs=1e-5)


def test_the_kl_loss_moves_its_target_variance(fabric: Fabric) -> None:
    with_kl = Engine(Toy(replace(demo(), kl=1.0), None), parse(OURS), 0, fabric)
    assert with_kl.regularizer is not None
    before = with_kl.regularizer.log_target.detach().clone()
    batches = with_kl.batches()
    for _ in range(3):
        with_kl.advance(batches)
    assert not torch.equal(with_kl.regularizer.log_target, before)
    assert Engine(Toy(replace(demo(), kl=1.0), None), parse("Embed-2D"), 0, fabric).regularizer is None
    assert Engine(Toy(demo(), None), parse("Learnable-Fourier+MLP(kl=0.5)"), 0, fabric).kl == 0.5
    with pytest.raises(Problem, match="learnable FourierFeatures"):
        Engine(Toy(demo(), None), parse("Embed-2D(kl=0.5)"), 0, fabric)


def test_dense_layers_of_the_host_decay_and_encodings_do_not(fabric: Fabric) -> None:
    engine = Engine(Toy(replace(demo(), weight_decay=0.1), None), parse(OURS), 0, fabric)
    decaying = [p for group in engine.adam.param_groups if group["weight_decay"] for p in group["params"]]
    assert [id(p) for p in decaying] == [id(engine.module[2].weight)]


def test_tensorboard_gets_what_the_metrics_get(tmp_path: Path, fabric: Fabric) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(tmp_path, fabric, replace(demo(), tensorboard=True))
    log = EventAccumulator(str(tmp_path / "tensorboard"))
    log.Reload()
    wanted = [line["loss"] for line in lines(tmp_path) if line["kind"] == "train"]
    assert [event.value for event in log.Scalars("train/loss")] == pytest.approx(wanted)


def test_fabric_is_found_in_lightning_where_its_own_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("lightning", "lightning.fabric", "lightning.fabric.plugins", "lightning.fabric.plugins.environments")
    for name in (*names, "lightning.fabric.plugins.environments.lightning"):
        other = types.ModuleType(name)
        other.Fabric = other.LightningEnvironment = "lightning's"
        monkeypatch.setitem(sys.modules, name, other)
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    monkeypatch.delitem(sys.modules, "lff.experiments.fabric")
    found = importlib.import_module("lff.experiments.fabric")
    assert (found.Fabric, found.LightningEnvironment) == ("lightning's", "lightning's")
