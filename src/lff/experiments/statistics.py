"""What the seeds allow to say: intervals, paired tests with Holm's correction, and the smallest difference they would show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, stats  # type: ignore[import-untyped]

ALPHA, POWER = 0.05, 0.8
SHORT = 0.05  # the level that curves are to reach lies this part of the default's final mean short of it


@dataclass(frozen=True)
class Estimate:
    """A mean over n values and half of its 95 % t-interval; one value has no interval."""

    mean: float
    half: float | None
    n: int


@dataclass(frozen=True)
class Difference:
    """A method less the default, on the seeds that both have. What cannot be computed is None.

    `paired` and `welch` are p-values as the tests give them, `holm` is `paired` after the correction, and `detectable` is the
    smallest true difference that the paired test would find with 80 % power.
    """

    seeds: tuple[int, ...]
    estimate: Estimate | None = None
    paired: float | None = None
    holm: float | None = None
    welch: float | None = None
    detectable: float | None = None

    @property
    def significant(self) -> bool:
        return self.holm is not None and self.holm < ALPHA


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean with its interval: t(0.975, n - 1) s / sqrt(n). None for no values."""
    n = len(values)
    if n == 0:
        return None
    mean = float(np.mean(values))
    if n == 1 or not math.isfinite(mean):
        return Estimate(mean, None, n)
    return Estimate(mean, float(stats.t.isf(ALPHA / 2, n - 1)) * _deviation(values) / math.sqrt(n), n)


def differences(methods: Mapping[str, Mapping[int, float]], default: str) -> dict[str, Difference]:
    """Every method but the default against it; both are given as seed to value. Holm's m is the number of these methods."""
    others = [method for method in methods if method != default]
    found = {method: _difference(methods[method], methods.get(default, {}), len(others)) for method in others}
    corrected = holm([found[method].paired for method in others])
    return {method: replace(found[method], holm=p) for method, p in zip(others, corrected, strict=True)}


def _difference(method: Mapping[int, float], default: Mapping[int, float], m: int) -> Difference:
    seeds = tuple(sorted(set(method) & set(default)))
    by = [method[seed] - default[seed] for seed in seeds]
    deviation = _deviation(by)
    return Difference(
        seeds,
        estimate(by),
        paired=paired(by),
        welch=welch(list(method.values()), list(default.values())),
        detectable=detectable(deviation, len(seeds), m) if deviation > 0 else None,
    )


def paired(by: Sequence[float]) -> float | None:
    """p of the paired t-test of differences. None for fewer than two, and where they do not vary: then t has no distribution."""
    deviation = _deviation(by)
    if not deviation > 0:
        return None
    t = abs(float(np.mean(by))) * math.sqrt(len(by)) / deviation
    return float(2 * stats.t.sf(t, len(by) - 1))


def welch(a: Sequence[float], b: Sequence[float]) -> float | None:
    """p of Welch's t-test, which does not pair; None where either has one value, or neither varies."""
    if len(a) < 2 or len(b) < 2:
        return None
    of_a, of_b = _deviation(a) ** 2 / len(a), _deviation(b) ** 2 / len(b)
    if not of_a + of_b > 0:
        return None
    t = abs(float(np.mean(a) - np.mean(b))) / math.sqrt(of_a + of_b)
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    return float(2 * stats.t.sf(t, freedom))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's correction. A test that could not be made counts among the m and comes last."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(p) - rank) * value))
        corrected[i] = largest
    return corrected


def detectable(deviation: float, n: int, m: int) -> float | None:
    """The true difference that the paired t-test of n seeds finds with 80 % power, given the deviation of the differences.

    Two-sided at 0.05 / m, the first step of Holm's correction over m methods. None for one seed, or where nothing varies.
    """
    if n < 2 or not deviation > 0:
        return None
    high = 1.0
    while power(high, n, ALPHA / m) < POWER:
        high *= 2
    return deviation * float(optimize.brentq(lambda effect: power(effect, n, ALPHA / m) - POWER, 0.0, high))


def power(effect: float, n: int, alpha: float) -> float:
    """How often the two-sided paired t-test finds a difference of `effect` deviations with n pairs."""
    critical, shift = float(stats.t.isf(alpha / 2, n - 1)), effect * math.sqrt(n)
    # The other side by symmetry: scipy's cdf is nan far out on it.
    return float(stats.nct.sf(critical, n - 1, shift) + stats.nct.sf(critical, n - 1, -shift))


def level(mean: float, larger: bool) -> float:
    """What curves are to reach: 0.95 times the default's final mean, or 1.05 times where smaller is better."""
    return mean - SHORT * abs(mean) if larger else mean + SHORT * abs(mean)


def steps_to(points: Mapping[int, float], reach: float, larger: bool) -> float | None:
    """The first step at which a curve, straight between its points, is at `reach` or beyond; None where it never is."""
    sign = 1 if larger else -1
    before: tuple[int, float] | None = None
    for step in sorted(points):
        ahead = sign * (points[step] - reach)
        if ahead >= 0:
            return float(step) if before is None else before[0] + (step - before[0]) * before[1] / (before[1] - ahead)
        before = (step, ahead) if math.isfinite(ahead) else before
    return None


def _deviation(values: Sequence[float]) -> float:
    """The standard deviation; exactly 0 for values that differ by rounding alone, nan where one is not finite."""
    if len(values) < 2:
        return 0.0
    if not all(map(math.isfinite, values)):
        return math.nan
    deviation = float(np.std(values, ddof=1))
    return deviation if deviation > 1e-12 * float(np.abs(values).max()) else 0.0
