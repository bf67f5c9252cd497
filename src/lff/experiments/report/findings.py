"""What the records of a comparison say, computed once for tables, figures and sentences."""

from dataclasses import dataclass

import numpy as np

from lff.experiments.measures import Measure
from lff.experiments.records import Comparison, Run
from lff.experiments.statistics import Difference, Estimate, differences, estimate, level, steps_to

COLOURS = 6  # beside that of the default


@dataclass(frozen=True)
class Finding:
    """One method. `steps` has an entry for each finished run, None where the level was not reached."""

    method: str
    measures: dict[str, Estimate | None]
    difference: Difference | None
    steps: tuple[float | None, ...]
    parameters: int | None
    speed: float | None
    finished: int


@dataclass(frozen=True)
class Size:
    """The primary measure of one method at image sizes, by scale, for one way of asking for them."""

    method: str
    asked: str
    at: dict[float, Estimate]


@dataclass(frozen=True)
class Findings:
    """All methods; `missing` are runs that were asked for and have not begun."""

    comparison: Comparison
    rows: list[Finding]
    level: float | None
    sizes: list[Size]
    unfinished: list[Run]
    missing: list[tuple[str, int]]

    @property
    def primary(self) -> Measure:
        return self.comparison.measures[0]

    def row(self, method: str) -> Finding:
        return next(row for row in self.rows if row.method == method)

    def colour(self, method: str) -> int:
        """The number of a method's colour: 0 for the default, the others in turn."""
        return 0 if method == self.comparison.default else 1 + self._turn(method) % COLOURS

    def dashes(self, method: str) -> int:
        """How often the colours have been used before: it changes the line."""
        return 0 if method == self.comparison.default else self._turn(method) // COLOURS

    def _turn(self, method: str) -> int:
        return [other for other in self.comparison.methods if other != self.comparison.default].index(method)

    def best(self) -> list[str]:
        """The methods with the best mean of the primary measure: one, or several that tie."""
        means = {row.method: found.mean for row in self.rows if (found := row.measures[self.primary.key])}
        best = self.primary.best(list(means.values()))
        return [method for method, mean in means.items() if mean == best]

    @property
    def compared(self) -> list[Difference]:
        return [row.difference for row in self.rows if row.difference]

    @property
    def detectable(self) -> float | None:
        """The median over the methods of the smallest difference that would be found."""
        known = [difference.detectable for difference in self.compared if difference.detectable is not None]
        return float(np.median(known)) if known else None


def find(comparison: Comparison) -> Findings:
    """Computes everything that the report states."""
    primary = comparison.measures[0]
    against = differences({m: comparison.values(m, primary.key) for m in comparison.methods}, comparison.default)
    default = estimate(list(comparison.values(comparison.default, primary.key).values()))
    reach = level(default.mean, primary.larger) if default else None
    rows = []
    for method in comparison.methods:
        runs = comparison.finished(method)
        rows.append(
            Finding(
                method,
                {m.key: estimate(list(comparison.values(method, m.key).values())) for m in comparison.measures},
                against.get(method),
                tuple(steps_to(run.points(primary.key), reach, primary.larger) for run in runs) if reach is not None else (),
                next(
                    (int(run.final["encoding_parameters"]) for run in runs if run.final and "encoding_parameters" in run.final),
                    None,
                ),
                _speed(comparison, method),
                len(runs),
            )
        )
    begun = {(run.method, run.seed) for run in comparison.runs}
    asked = [(method, seed) for method in comparison.about["methods"] for seed in comparison.about["seeds"]]
    unfinished = [run for run in comparison.runs if run.final is None]
    missing = [pair for pair in asked if pair not in begun]
    return Findings(comparison, rows, reach, _sizes(comparison, primary), unfinished, missing)


def _speed(comparison: Comparison, method: str) -> float | None:
    """Steps per second relative to the default: the median ratio of blocks measured next to each other."""
    seconds = {row["method"]: row["seconds"] for row in (comparison.speed or {"rows": []})["rows"] if row["seconds"]}
    if method not in seconds or comparison.default not in seconds:
        return None
    return float(np.median([theirs / ours for theirs, ours in zip(seconds[comparison.default], seconds[method], strict=True)]))


def _sizes(comparison: Comparison, primary: Measure) -> list[Size]:
    sizes = []
    for method in comparison.methods:
        values: dict[str, dict[float, list[float]]] = {}
        for run in comparison.finished(method):
            for asked, scale, value in run.sizes(primary.key):
                values.setdefault(asked, {}).setdefault(scale, []).append(value)
        trained = values.pop("trained", {})  # the size that was trained belongs to every way of asking
        for asked, at in (values or {"trained": {}}).items() if values or trained else ():
            merged = sorted({**trained, **at}.items())
            sizes.append(Size(method, asked, {scale: found for scale, v in merged if (found := estimate(v))}))
    return sizes
