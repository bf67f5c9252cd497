"""Several processes on one machine, each `lff compare` on the same folder, spread over its GPUs; this one watches."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lff.experiments.compare import Comparison
from lff.experiments.devices import cores
from lff.experiments.engine import processes
from lff.experiments.folder import finished
from lff.experiments.problems import Problem
from lff.experiments.training import Signals, Stopped


def fitting(comparison: Comparison, device: str) -> int:
    """One for each GPU, or without one for each core, as far as there are runs to do; one under torchrun or SLURM."""
    if processes(os.environ)[0] > 1:
        return 1
    there = torch.cuda.device_count() if device != "cpu" and torch.cuda.is_available() else cores()
    return max(1, min(there, len(comparison.left())))


def run(comparison: Comparison, arguments: list[str], count: int) -> None:
    """Starts `count` workers with this command line, shows how far they are, and ends when all have.

    Args:
        comparison: what they do.
        arguments: of `lff`, as this process was given them.
        count: how many.
    """
    logs = comparison.out / "workers"
    logs.mkdir(parents=True, exist_ok=True)
    workers = [_start(arguments, index, count, logs / f"{index}.log") for index in range(count)]
    watch = _Watch(comparison)
    try:
        with Signals() as signals:
            while any(worker.poll() is None for worker in workers):
                if signals.came:
                    raise Stopped("stopped; the same command goes on with what is left")
                watch.look()
                time.sleep(1.0)
    finally:
        watch.end()
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait()
    failed = [index for index, worker in enumerate(workers) if worker.returncode]
    if failed:
        last = (logs / f"{failed[0]}.log").read_text().strip().splitlines()[-2:]
        raise Problem(f"worker {failed[0]} ended with exit code {workers[failed[0]].returncode}: {' '.join(last)}")


def _start(arguments: list[str], index: int, count: int, log: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    environment.setdefault("OMP_NUM_THREADS", str(max(1, cores() // count)))
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(torch.cuda.device_count())))).split(",")
    if any(gpus):
        environment["CUDA_VISIBLE_DEVICES"] = gpus[index % len(gpus)]
    command = [sys.executable, "-m", "lff", *arguments, "--workers", "1", "--silent"]
    with log.open("wb") as file:
        return subprocess.Popen(command, env=environment, stdout=file, stderr=file, stdin=subprocess.DEVNULL)


class _Watch:
    """All runs as one bar; elsewhere than on a terminal, a line every half minute."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self.total = comparison.config.steps * len(comparison.matrix())
        self._console = Console(file=sys.stderr)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._said = self._began = time.monotonic()
        self._before: int | None = None
        if self._console.is_terminal:
            columns = (
                "{task.description}",
                BarColumn(),
                TextColumn("{task.fields[how]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, console=self._console)
            self._task = self._bar.add_task(comparison.task, total=self.total, how="")
            self._bar.start()

    def look(self) -> None:
        folders = [self.comparison.folder(*each) for each in self.comparison.matrix()]
        done = [finished(folder) for folder in folders]
        steps = sum(self.comparison.config.steps if ended else _step(folder) for folder, ended in zip(folders, done, strict=True))
        if self._before is None:
            self._before = steps
        speed = (steps - self._before) / max(1e-9, time.monotonic() - self._began)
        how = f"{sum(done)} of {len(done)} runs, {speed:.1f} steps/s"
        if self._bar is not None:
            self._bar.update(self._task, completed=steps, how=how)
        elif time.monotonic() - self._said > 30:
            self._said = time.monotonic()
            left = f"{(self.total - steps) / speed / 60:.0f} min left" if speed else "beginning"
            self._console.print(f"{how}, {left}", highlight=False)

    def end(self) -> None:
        if self._bar is not None:
            self.look()
            self._bar.stop()


def _step(folder: Path) -> int:
    """The last step that a run has logged."""
    metrics = folder / "metrics.jsonl"
    if not metrics.exists():
        return 0
    with metrics.open("rb") as file:
        file.seek(max(0, metrics.stat().st_size - 4096))
        words = file.read().rpartition(b'"step": ')[2].partition(b",")[0]
    return int(words) if words.isdigit() else 0
