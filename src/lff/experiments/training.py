"""A run from its beginning, or its last checkpoint, to its end; what it leaves in its folder."""

import json
import signal
import time
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from lff.experiments.display import Display
from lff.experiments.engine import Engine
from lff.experiments.environment import environment
from lff.experiments.folder import RunFolder, write
from lff.experiments.methods import Row
from lff.experiments.order import Order
from lff.experiments.problems import Diverged
from lff.experiments.task import Task


class Stopped(Exception):
    """A run, or all of them, was told to stop, and has written a checkpoint."""


class Signals:
    """Notes SIGTERM and Ctrl-C instead of dying of them."""

    came = False

    def __enter__(self) -> "Signals":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def run_config(task: Task[Any], name: str, row: Row, seed: int) -> dict[str, Any]:
    """What config.json holds."""
    return {"task": name, "method": row.label, "seed": seed, **task.config.shared(), **task.about()}


def train(engine: Engine, folder: RunFolder, display: Display) -> None:
    """Trains to the end, from the last checkpoint if there is one, and writes the run's folder.

    SIGTERM and Ctrl-C make it write a checkpoint and raise `Stopped`. A loss that is not finite raises `Diverged`; then
    failure.pt holds the weights before that step, failure.json the step and the samples.
    """
    task, config, first = engine.task, engine.config, engine.world.rank == 0
    state = folder.load() if first else None
    state = engine.fabric.broadcast(state) if engine.world.size > 1 else state
    if state is not None:
        engine.restore(state)
    elif first:
        _keep_encoding(engine, folder, "initial")
    seconds = state["seconds"] if state is not None else 0.0
    if first:
        _note_environment(engine, folder)
        folder.forget_failure()
    log = _tensorboard(folder, engine.step) if first and config.tensorboard else None
    batches = engine.batches()
    losses: list[Tensor] = []

    def record(kind: str, values: dict[str, Any]) -> None:
        if not first:
            return
        folder.append({"kind": kind, "step": engine.step, **values})
        if log is not None:
            for key, value in values.items():
                if isinstance(value, int | float):
                    log.add_scalar(f"{kind}/{key}", value, engine.step)

    def save() -> None:
        if first:
            folder.save({**engine.state(), "seconds": seconds})
        engine.fabric.barrier()

    display.begin(config.steps, engine.step)
    with Signals() as signals:
        try:
            start = time.perf_counter()
            while engine.step < config.steps:
                losses.append(engine.advance(batches))
                now, last = engine.step, engine.step == config.steps
                logs, evaluates = last or now % config.log_every == 0, last or now % config.evaluate_every == 0
                saves = not last and now % config.checkpoint_every == 0
                stops = not last and _agree(engine, signals, now)
                if logs or evaluates or saves or stops:
                    engine.check()
                    seconds, start = seconds + time.perf_counter() - start, time.perf_counter()
                if logs:
                    loss = torch.stack(losses).mean().item()
                    losses.clear()
                    rate = config.rate_at(now - 1)
                    record("train", {"loss": loss, "rate": rate, "norm": engine.norm.item(), "seconds": round(seconds, 3)})
                    display.step(now, loss)
                if evaluates and not last:
                    found = engine.evaluate(task.evaluate)
                    record("evaluation", found)
                    display.evaluation(now, found)
                if saves or stops:
                    save()
                if stops:
                    raise Stopped(f"stopped at step {now} of {config.steps}; the same command goes on from there")
                if evaluates or saves:
                    start = time.perf_counter()
        except FloatingPointError as error:
            raise Diverged(_keep_failure(engine, folder, str(error))) from error
        finally:
            if hasattr(batches, "close"):
                batches.close()
            if log is not None:
                log.close()
    found = engine.evaluate(task.final)
    if first:
        _keep_encoding(engine, folder, "final")
        folder.keep(task.keeps(engine.module), task.spells())
        counts = {
            "parameters": sum(p.numel() for p in engine.module.parameters()),
            "encoding_parameters": task.encoding_parameters(engine.module),
        }
        record("final", {**found, **counts, "seconds": round(seconds, 3)})
        folder.drop_checkpoint()
    display.evaluation(engine.step, found)
    engine.fabric.barrier()


def _agree(engine: Engine, signals: Signals, step: int) -> bool:
    """Whether to stop: at once in one process; together, every few steps, in several."""
    if engine.world.size == 1:
        return signals.came
    return step % 10 == 0 and bool(engine.world.sum(torch.tensor(float(signals.came), device=engine.world.device)).item())


def _keep_failure(engine: Engine, folder: RunFolder, what: str) -> str:
    said = f"{what}; {folder.path} keeps the weights before it (failure.pt) and the samples of its batch (failure.json)"
    if engine.world.rank == 0:
        samples = Order(engine.task.samples, engine.config.batch, engine.seed)(engine.step).tolist()
        folder.fail({"step": engine.step, "what": said, "samples": samples}, engine.state())
    return said


def _keep_encoding(engine: Engine, folder: RunFolder, when: str) -> None:
    encoding = engine.task.encoding(engine.module)
    if encoding is not None:
        encoding.save_pretrained(folder.path / "checkpoint" / f"encoding-{when}")


def _note_environment(engine: Engine, folder: RunFolder) -> None:
    """Where the run is; a run that goes on elsewhere says so."""
    file = folder.path / "environment.json"
    here = environment(device=engine.world.device.type, seeds=[engine.seed]) | {"processes": engine.world.size}
    noted = json.loads(file.read_text()) if file.exists() and engine.step else here
    if engine.step:
        noted.setdefault("resumed", []).append({"step": engine.step} | here)
    write(file, json.dumps(noted, indent=1))


def _tensorboard(folder: RunFolder, step: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder.path / "tensorboard"), purge_step=step)
