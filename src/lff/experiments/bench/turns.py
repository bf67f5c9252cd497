"""Seconds of several pieces of work, from blocks of calls taken in turns; one that fails is left out and says why."""

import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from lff.experiments.bench.row import Bar, Row, paired

Work = Callable[[], object]
#: How an entrant runs ("eager", "CUDA graph", ...), and its name.
Key = tuple[str, str]
AGAIN = "itself, again"


@dataclass(frozen=True)
class Bench:
    """Where it is measured, and for how long.

    Args:
        device: a CPU or a GPU.
        blocks: how often each piece of work has its turn.
        block: seconds of a turn, in which at least one call is made.
    """

    device: torch.device
    blocks: int = 15
    block: float = 0.03

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    def longer(self) -> "Bench":
        """For training steps, of which a turn should hold several."""
        return replace(self, block=4 * self.block)

    def half(self) -> torch.autocast:
        """Autocast to bfloat16."""
        return torch.autocast(self.device.type, torch.bfloat16)

    def race(self, makers: Mapping[Key, Callable[[], Work]]) -> "Times":
        """Seconds of one call of each. What is given makes the work, so that a failure to make it is that entrant's own."""
        times, works, calls = Times(), dict[Key, Work](), dict[Key, int]()
        for key, make in makers.items():
            with times.excusing(key):
                work = make()
                work()  # compiles, fills caches
                work()
                calls[key] = max(1, round(self.block / self._timed(work, 1)))
                works[key], times.seconds[key] = work, []
        names = list(works)
        for turn in range(-1, self.blocks):  # the first is a warm-up
            at = turn % max(1, len(names))  # the order changes, so that none always runs in the wake of the same other
            for key in names[at:] + names[:at]:
                with times.excusing(key):
                    if key in works:
                        seconds = self._timed(works[key], calls[key])
                        times.seconds[key] += [seconds] if turn >= 0 else []
                if key in times.failed:
                    works.pop(key, None)
        return times

    def _timed(self, work: Work, calls: int) -> float:
        # On one thread of a CPU its own time is the same, less what other processes take of a shared machine.
        clock = time.perf_counter if self.gpu else time.process_time
        self.wait()
        start = clock()
        for _ in range(calls):
            work()
        self.wait()
        return (clock() - start) / calls

    def wait(self) -> None:
        """Until the device has done what it was given."""
        if self.gpu:
            torch.cuda.synchronize(self.device)


@dataclass(frozen=True)
class Times:
    """What a race gave.

    Args:
        seconds: of one call, block by block.
        failed: why an entrant has none.
    """

    seconds: dict[Key, list[float]] = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)

    def row(self, case: str, what: str, of: Key, against: Key, *, bar: Bar | None = None, spread: float | None = None) -> Row:
        """Of one entrant over another."""
        wrong = [f"{key[1]}: {self.failed[key]}" for key in (of, against) if key in self.failed]
        row = Row(case=case, what=what, of=of[1], against=against[1], bar=bar, spread=spread)
        if wrong:
            return replace(row, failed="; ".join(wrong))
        value, base = (1000 * statistics.median(self.seconds[key]) for key in (of, against))
        return replace(row, ratio=paired(self.seconds[of], self.seconds[against]), value=value, base=base, unit="ms")

    def equal(self, case: str, what: str, how: str, name: str) -> tuple[Row, float | None]:
        """Of an entrant and AGAIN, which is the same: the row, and the spread; no spread where one of them failed."""
        again, first = (how, AGAIN), (how, name)
        row = self.row(case, what, again, first)
        return row, None if row.ratio is None else row.ratio.spread

    @contextmanager
    def excusing(self, key: Key) -> Iterator[None]:
        """What goes wrong inside is noted, and costs the others nothing."""
        try:
            yield
        except Exception as error:  # out of memory, no compiler, a kernel that does not build
            self.failed[key] = told(error)
            self.seconds.pop(key, None)
        if key in self.failed and torch.cuda.is_available():
            torch.cuda.empty_cache()


def told(error: Exception) -> str:
    """An exception in a line for the table; all of it goes to where progress is shown."""
    traceback.print_exception(error)
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0][:200]}" if said else type(error).__name__
