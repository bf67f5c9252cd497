"""How a run tells how it goes: a bar with loss, rate and time left on a terminal, a line at every evaluation elsewhere."""

import sys
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Display:
    """Of one run.

    Args:
        label: what is being trained.
        silent: say nothing, as a worker whose parent does.
    """

    def __init__(self, label: str, *, silent: bool = False) -> None:
        self.label, self.silent = label, silent
        self._console = Console(file=sys.stderr)
        self._bar: Progress | None = None
        self._started = (0.0, 0)

    def begin(self, steps: int, done: int) -> None:
        self.steps = steps
        self._started = time.perf_counter(), done
        if self._console.is_terminal and not self.silent:
            columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[how]}"))
            self._bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self._console)
            self._task = self._bar.add_task(self.label, total=steps, completed=done, how="")
            self._bar.start()
        elif done:
            self.say(f"goes on from step {done}")

    def step(self, step: int, loss: float) -> None:
        self._loss = loss
        if self._bar is not None:
            self._bar.update(self._task, completed=step, how=f"loss {loss:.3f}, {self._speed(step):.1f} steps/s")

    def evaluation(self, step: int, found: dict[str, Any]) -> None:
        if self._bar is None:
            values = ", ".join(f"{key} {value:.4g}" for key, value in found.items() if isinstance(value, float))
            self.say(f"step {step} of {self.steps}, {self._speed(step):.1f} steps/s: {values}")

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _speed(self, step: int) -> float:
        began, done = self._started
        return (step - done) / (time.perf_counter() - began)

    def say(self, text: str) -> None:
        if not self.silent:
            self._console.print(f"{self.label}: {text}", markup=False, highlight=False, soft_wrap=True)
