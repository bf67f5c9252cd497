"""A row of the benchmark: a ratio with its uncertainty, and the bar that it has to meet, if any."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Bar(NamedTuple):
    """What a ratio must be at most or at least."""

    sense: str
    limit: float

    def __str__(self) -> str:
        return f"{'≤' if self.sense == 'at most' else '≥'} {self.limit:.4g}"


def at_most(limit: float) -> Bar:
    """A bar from above."""
    return Bar("at most", limit)


def at_least(limit: float) -> Bar:
    """A bar from below."""
    return Bar("at least", limit)


class Ratio(NamedTuple):
    """A median of paired measurements, and its 95 % interval."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Where this is of two equal runs: how far from one their ratio may lie by chance."""
        return max(abs(self.low - 1), abs(self.high - 1))


def paired(of: Sequence[float], against: Sequence[float]) -> Ratio:
    """Ratios of neighbouring blocks, so that what drifts slowly cancels; the interval is that of the median by ranks."""
    ratios = sorted(a / b for a, b in zip(of, against, strict=True))
    n = len(ratios)
    outside = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return Ratio(statistics.median(ratios), ratios[outside], ratios[-1 - outside])


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table.

    Args:
        case: the name that `--only` takes.
        what: the work.
        of: what was measured.
        against: what it is divided by.
        ratio: the median, and its interval; None where measuring failed.
        value: what was measured, in `unit`.
        base: what it was divided by, likewise.
        unit: "ms" or "MB", empty where the ratio says it all.
        bar: what the ratio must be.
        spread: of two equal runs in the same turns.
        failed: why there is no ratio.
    """

    case: str
    what: str
    of: str
    against: str
    ratio: Ratio | None = None
    value: float | None = None
    base: float | None = None
    unit: str = ""
    bar: Bar | None = None
    spread: float | None = None
    failed: str = ""

    @property
    def verdict(self) -> str:
        """Whether the bar is met; one that is nearer to 1.0 than the spread of two equal runs holds within that spread."""
        if self.failed:
            return f"failed: {self.failed}"
        if self.bar is None or self.ratio is None:
            return ""
        beyond = self.ratio.median - self.bar.limit if self.bar.sense == "at most" else self.bar.limit - self.ratio.median
        if beyond <= 0:
            return "met"
        spread = self.spread or 0.0
        return "met within the spread" if abs(self.bar.limit - 1) < spread and beyond <= spread else "not met"
