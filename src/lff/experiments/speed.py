"""Seconds of a training step for several methods, measured alone and in turns, so that what changes with time hits all alike."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from lff.experiments.engine import Engine
from lff.experiments.fabric import Fabric
from lff.experiments.methods import Row
from lff.experiments.task import Task

BLOCKS, BLOCK_SECONDS, WARMUP = 7, 0.4, 5


def in_turns(works: Mapping[str, Callable[[], object]], device: torch.device, blocks: int = BLOCKS) -> dict[str, list[float]]:
    """Seconds of one call of each, from blocks of calls taken in turns, after a warm-up."""

    def timed(work: Callable[[], object], calls: int) -> float:
        _wait(device)
        start = time.perf_counter()
        for _ in range(calls):
            work()
        _wait(device)
        return (time.perf_counter() - start) / calls

    for work in works.values():
        timed(work, WARMUP)
    calls = {name: max(1, int(BLOCK_SECONDS / timed(work, 2))) for name, work in works.items()}
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(blocks):
        for name, work in works.items():
            found[name].append(timed(work, calls[name]))
    return found


def steps(task: Task[Any], rows: list[Row], fabric: Fabric) -> dict[str, list[float]]:
    """Seconds of a training step for every method."""
    return in_turns({row.label: stepper(Engine(task, row, 0, fabric)) for row in rows}, fabric.device)


def stepper(engine: Engine) -> Callable[[], object]:
    """A training step, again and again."""

    def again() -> Iterator[Any]:
        engine.step = 0
        return engine.batches()

    batches = endless(again)
    return lambda: engine.advance(batches)


def endless(again: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Batches, from the beginning when they end."""
    for _ in itertools.count():
        yield from again()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
