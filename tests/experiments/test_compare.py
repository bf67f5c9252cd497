"""Whole commands in real processes: killed, sharing a folder, and together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lff.experiments.methods import slug

pytestmark = pytest.mark.plain
HERE = Path(__file__).parent
OURS = "Learnable-Fourier+MLP"


def start(*words: str | Path, launcher: tuple[str, ...] = ("-m",), **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, *launcher, "lff", *map(str, words), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    said, _ = process.communicate(timeout=240)
    assert process.returncode == code, said
    return said


def lines(run: Path) -> list[dict[str, Any]]:
    """What a run found, without how long it took."""
    found = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in found]


def wait_for(run: Path, step: int) -> None:
    for _ in range(2400):
        metrics = run / "metrics.jsonl"
        if metrics.exists() and f'"step": {step},' in metrics.read_text():
            return
        time.sleep(0.02)
    raise AssertionError(f"{run} did not reach step {step}")


def test_a_run_killed_at_several_points_ends_with_identical_numbers(tmp_path: Path) -> None:
    words = ("train", "classification", "--preset", "tiny", "--method", OURS, "--steps", "60", "--log-every", "1")
    run = f"runs/{OURS}--seed-0"
    whole = start(*words, "--out", tmp_path / "whole")
    for step in (3, 26, 47):  # before the first checkpoint, and between two
        cut = start(*words, "--out", tmp_path / "cut")
        wait_for(tmp_path / "cut" / run, step)
        cut.send_signal(signal.SIGKILL)
        cut.communicate()
        assert cut.returncode == -signal.SIGKILL, "the run ended before it was killed"
    finish(start(*words, "--out", tmp_path / "cut"))
    finish(whole)
    assert lines(tmp_path / "cut" / run) == lines(tmp_path / "whole" / run)
    assert len(json.loads((tmp_path / "cut" / run / "environment.json").read_text())["resumed"]) == 2


def follow(tmp_path: Path, words: tuple[str, ...], steps: int, within: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Runs a command in one process and in two of torchrun, which must log the same losses; gives the last line of each."""
    finish(start(*words, "--out", tmp_path / "one"))
    together = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m")
    finish(start(*words, "--out", tmp_path / "two", launcher=together))
    one, two = (lines(tmp_path / name / f"runs/{OURS}--seed-0") for name in ("one", "two"))
    losses = [[line["loss"] for line in found if line["kind"] == "train"] for found in (one, two)]
    assert len(losses[0]) == steps
    assert losses[1] == pytest.approx(losses[0], abs=within)
    assert json.loads((tmp_path / "two" / f"runs/{OURS}--seed-0" / "environment.json").read_text())["processes"] == 2
    return one[-1], two[-1]


def test_two_processes_follow_the_losses_of_one(tmp_path: Path) -> None:
    words = ("train", "classification", "--preset", "tiny", "--method", OURS, "--steps", "20", "--log-every", "1")
    one, two = follow(tmp_path, words, 20, 1e-5)
    assert two["top1"] == pytest.approx(one["top1"], abs=0.01)


def test_two_processes_compare_generation_with_the_losses_of_one(tmp_path: Path) -> None:
    """As the `paper` preset is run: layers hash by the run's own generator, which both processes must agree on."""
    quick = ("--seeds", "1", "--steps", "8", "--log-every", "1", "--judged", "6", "--checkpoint-every", "8")
    one, two = follow(tmp_path, ("compare", "generation", "--preset", "tiny", "--methods", OURS, *quick), 8, 1e-4)
    assert two["bpd"] == pytest.approx(one["bpd"], abs=1e-3)


def test_two_tasks_of_a_slurm_step_train_together(tmp_path: Path) -> None:
    """The variables that srun sets, for two tasks on one machine."""
    step = {
        "SLURM_NTASKS": "2",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_NNODES": "1",
        "SLURM_NTASKS_PER_NODE": "2",
    }
    step |= {"SLURM_JOB_ID": "4242", "SLURM_JOB_NAME": "lff", "SLURM_NODELIST": "127.0.0.1", "SLURM_NODEID": "0"}
    words = ("train", "toy:Toy", "--method", "Embed-2D", "--out", tmp_path)
    tasks = [start(*words, **step, SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank)) for rank in (0, 1)]
    for task in tasks:
        finish(task)
    assert lines(tmp_path / "runs/Embed-2D--seed-0")[-1]["kind"] == "final"
    assert json.loads((tmp_path / "runs/Embed-2D--seed-0/environment.json").read_text())["processes"] == 2


def test_workers_share_a_folder_and_no_run_is_done_twice(tmp_path: Path) -> None:
    said = finish(start("compare", "toy:Toy", "--seeds", "3", "--workers", "2", "--out", tmp_path))
    assert f"The report is {tmp_path / 'report.html'}" in said
    runs = sorted((tmp_path / "runs").glob("*--seed-?"))
    assert len(runs) == 6
    for run in runs:
        assert [line["kind"] for line in lines(run)].count("final") == 1
        assert "resumed" not in json.loads((run / "environment.json").read_text())
    assert not list((tmp_path / "runs").glob("*.claim"))
    before = {run: (run / "metrics.jsonl").stat().st_mtime_ns for run in runs}
    again = finish(start("compare", "toy:Toy", "--seeds", "4", "--workers", "1", "--out", tmp_path))  # one seed more
    assert "6 of 6" not in again
    assert {run: (run / "metrics.jsonl").stat().st_mtime_ns for run in runs} == before
    assert len(list((tmp_path / "runs").glob("*--seed-?"))) == 8


def test_a_comparison_that_is_told_to_stop_goes_on(tmp_path: Path) -> None:
    words = ("compare", "toy:Toy", "--steps", "20000", "--seeds", "1", "--log-every", "1", "--workers", "1", "--out", tmp_path)
    first = start(*words)
    wait_for(tmp_path / "runs" / "Embed-2D--seed-0", 25)
    first.send_signal(signal.SIGTERM)
    said = finish(first, code=143)
    assert "the same command goes on from there" in said
    assert (tmp_path / "runs" / "Embed-2D--seed-0" / "checkpoint" / "last.pt").exists()


def test_the_watcher_of_workers_stops_them_when_it_is_told_to(tmp_path: Path) -> None:
    words = ("compare", "toy:Toy", "--steps", "20000", "--seeds", "1", "--log-every", "1", "--workers", "2", "--out", tmp_path)
    first = start(*words)
    for method in ("Embed-2D", "Learnable-Fourier+MLP(gamma=4.0)"):
        wait_for(tmp_path / "runs" / slug(method, 0), 5)
    first.send_signal(signal.SIGTERM)
    assert "the same command goes on with what is left" in finish(first, code=143)
    assert len(list((tmp_path / "runs").glob("*/checkpoint/last.pt"))) == 2
    assert not list((tmp_path / "runs").glob("*.claim"))


def test_a_run_that_diverged_is_told_of_at_the_end_and_not_tried_again(tmp_path: Path) -> None:
    words = ("compare", "toy:Toy", "--seeds", "1", "--workers", "1", "--out", tmp_path)
    wild = "Learnable-Fourier+MLP(scale=1e30)"
    said = finish(start(*words, "--methods", "Embed-2D", wild), code=2)
    assert f"lff: {wild}, seed 0: the loss or its gradient was not finite at step 0" in said
    assert f"The report is {tmp_path / 'report.html'}" in said
    run = tmp_path / "runs" / slug(wild, 0)
    before = (run / "failure.pt").stat().st_mtime_ns
    assert "not finite at step 0" in finish(start(*words, "--methods", "Embed-2D", wild, "--workers", "2"), code=2)
    assert (run / "failure.pt").stat().st_mtime_ns == before
    finish(start("train", "toy:Toy", "--method", wild, "--out", tmp_path), code=2)  # on purpose: tried again
    assert (run / "failure.pt").stat().st_mtime_ns > before


def test_one_run_declares_its_own_seed_alone(tmp_path: Path) -> None:
    finish(start("train", "toy:Toy", "--method", "Embed-2D", "--seed", "5", "--out", tmp_path))
    assert json.loads((tmp_path / "compare.json").read_text())["seeds"] == [5]
    finish(start("compare", "toy:Toy", "--seeds", "1", "--methods", "Embed-2D", "--workers", "1", "--out", tmp_path))
    assert json.loads((tmp_path / "compare.json").read_text())["seeds"] == [5, 0]
