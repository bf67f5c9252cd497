"""`lff compare`: trains every method with every seed, once, whoever does it, and writes the report."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from lff.experiments.claims import claim
from lff.experiments.config import Config, differences
from lff.experiments.display import Display
from lff.experiments.engine import Engine, launch
from lff.experiments.environment import environment
from lff.experiments.fabric import Fabric
from lff.experiments.folder import RunFolder, failure, finished, reading, write
from lff.experiments.methods import Row, parse, slug
from lff.experiments.problems import Diverged, Problem, plainly
from lff.experiments.task import Task
from lff.experiments.training import run_config, train


@dataclass(frozen=True)
class Comparison:
    """What is compared, and where."""

    #: As the command line names it.
    task: str
    kind: type[Task[Any]]
    preset: str
    config: Config
    seeds: tuple[int, ...]
    data: Path | None
    out: Path
    command: str

    @property
    def rows(self) -> list[Row]:
        return [parse(label) for label in self.config.methods]

    def matrix(self) -> list[tuple[Row, int]]:
        """Method by method for the first seed, then the next: what is there is paired at any time."""
        return [(row, seed) for seed in self.seeds for row in self.rows]

    def left(self) -> list[tuple[Row, int]]:
        """What is neither finished nor diverged."""
        return [each for each in self.matrix() if not _ended(self.folder(*each))]

    def failures(self) -> list[str]:
        """Of the runs that diverged, a line each."""
        found = {f"{row.label}, seed {seed}": failure(self.folder(row, seed)) for row, seed in self.matrix()}
        return [f"{run}: {what}" for run, what in found.items() if what is not None]

    def folder(self, row: Row, seed: int) -> Path:
        return self.out / "runs" / slug(row.label, seed)

    def declare(self) -> None:
        """Writes compare.json; a folder of another config is refused, one with fewer methods or seeds grows."""
        about = {
            "task": self.task,
            "preset": self.preset,
            "command": self.command,
            "methods": list(self.config.methods),
            "seeds": list(self.seeds),
            "default": self.kind.default,
            "measures": [asdict(measure) for measure in self.kind.measures],
            "panels": self.kind.panels,
            "config": self.config.shared(),
        }
        if paper := self.kind.published(self.config):
            about["paper"] = {method: dict(values) for method, values in paper.items()}
        file = self.out / "compare.json"
        if file.exists():
            with reading(file):
                old = json.loads(file.read_text())
            new = json.loads(json.dumps(about["config"]))
            if old["config"] != new or old["task"] != self.task:
                changed = differences({"task": old["task"], **old["config"]}, {"task": self.task, **new})
                raise Problem(f"{self.out} holds another comparison ({changed}); give another --out")
            for key in ("methods", "seeds"):
                about[key] = [*old[key], *(each for each in about[key] if each not in old[key])]
        write(file, json.dumps(about, indent=1))


def work(comparison: Comparison, fabric: Fabric, task: Task[Any], *, silent: bool = False) -> None:
    """Does every run that is left and that no other process does, until none is. One that diverges does not stop the others."""
    waiting = False
    while left := _same(fabric, comparison.left()):
        done = 0
        for row, seed in left:
            with _claimed(fabric, comparison.folder(row, seed)) as mine:
                if mine:
                    done += 1
                    with contextlib.suppress(Diverged):
                        _run(comparison, row, seed, fabric, task, silent=silent)
        if not done:
            if not waiting and not silent and fabric.global_rank == 0:
                Display("compare").say(f"{len(left)} runs are being done by other workers; waiting for them")
            waiting = True
            time.sleep(1.0)


def one(comparison: Comparison, row: Row, seed: int, fabric: Fabric, task: Task[Any], *, silent: bool = False) -> None:
    """A single run of the matrix; one that is finished is left as it is, one that another process does is refused.

    One that diverged is tried again.
    """
    folder = comparison.folder(row, seed)
    with _claimed(fabric, folder, again=True) as mine:
        if mine:
            _run(comparison, row, seed, fabric, task, silent=silent)
        elif not finished(folder):
            raise Problem(f"{folder} is being written by another process")


def prepare(comparison: Comparison, device: str) -> tuple[Fabric, Task[Any]]:
    """The processes and the data."""
    fabric = launch(device, comparison.config.precision)
    with plainly():
        task = comparison.kind(comparison.config, comparison.data)
    return fabric, task


def measure_speed(comparison: Comparison, fabric: Fabric, task: Task[Any]) -> None:
    """Writes speed.json, unless it is there for all methods: seconds of a step of each, in turns, alone."""
    from lff.experiments import speed

    file = comparison.out / "speed.json"
    labels = json.loads((comparison.out / "compare.json").read_text())["methods"]

    def missing() -> bool:
        return not file.exists() or {row["method"] for row in json.loads(file.read_text())["rows"]} != set(labels)

    with claim(comparison.out / "speed.claim") as mine:
        if fabric.world_size == 1 and mine and missing():
            if fabric.device.type == "cpu":  # threads that wait for each other on a busy machine would be all that is measured
                torch.set_num_threads(1)
            seconds = speed.steps(task, [parse(label) for label in labels], fabric)
            rows = [{"method": method, "seconds": found} for method, found in seconds.items()]
            write(file, json.dumps({"environment": environment(device=fabric.device.type), "rows": rows}, indent=1))


def _run(comparison: Comparison, row: Row, seed: int, fabric: Fabric, task: Task[Any], *, silent: bool) -> None:
    engine = Engine(task, row, seed, fabric)
    folder = RunFolder(comparison.folder(row, seed), run_config(task, comparison.task, row, seed))
    display = Display(f"{row.label}, seed {seed}", silent=silent or fabric.global_rank > 0)
    try:
        train(engine, folder, display)
    finally:
        display.end()


def _ended(folder: Path) -> bool:
    return finished(folder) or failure(folder) is not None


@contextlib.contextmanager
def _claimed(fabric: Fabric, folder: Path, *, again: bool = False) -> Iterator[bool]:
    """For all processes of a run, the first one claims it."""
    if fabric.global_rank:
        yield bool(fabric.broadcast(None))
        return
    with claim(folder.with_name(f"{folder.name}.claim")) as mine:
        mine = mine and not (finished(folder) if again else _ended(folder))
        if fabric.world_size > 1:
            fabric.broadcast(mine)
        yield mine


def _same(fabric: Fabric, thing: Any) -> Any:
    """What the first process says."""
    return fabric.broadcast(thing) if fabric.world_size > 1 else thing
