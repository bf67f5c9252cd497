import itertools
import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lff.experiments.statistics import detectable, differences, estimate, holm, level, paired, power, steps_to, welch

A, B = [0.712, 0.698, 0.731, 0.705, 0.72], [0.69, 0.684, 0.722, 0.71, 0.695]


def test_the_interval_is_that_of_the_t_distribution() -> None:
    found = estimate(A)
    low, high = stats.t.interval(0.95, len(A) - 1, loc=np.mean(A), scale=stats.sem(A))
    assert found is not None
    assert (found.mean - found.half, found.mean + found.half, found.n) == pytest.approx((low, high, 5))


def test_one_value_has_no_interval_and_no_value_has_no_mean() -> None:
    found = estimate([0.5])
    assert found is not None
    assert (found.mean, found.half, found.n) == (0.5, None, 1)
    assert estimate([]) is None
    assert estimate([0.5, math.nan]).half is None


def test_tests_are_those_of_scipy() -> None:
    assert paired([a - b for a, b in zip(A, B, strict=True)]) == pytest.approx(stats.ttest_rel(A, B).pvalue)
    assert welch(A, B[:3]) == pytest.approx(stats.ttest_ind(A, B[:3], equal_var=False).pvalue)


def test_values_that_do_not_vary_are_not_tested() -> None:
    assert paired([0.1, 0.1, 0.1 + 1e-17]) is None
    assert paired([0.0, 0.0]) is None
    assert paired([0.3]) is None
    assert welch([0.5, 0.5], [0.6, 0.6]) is None
    assert welch([0.5], [0.6, 0.7]) is None
    assert welch([0.5, 0.5], [0.6, 0.7]) is not None
    assert detectable(0.0, 5, 3) is None
    assert detectable(0.1, 1, 3) is None
    assert estimate([0.5, 0.5]).half == 0


def test_holm_by_hand() -> None:
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1; the last may not be smaller than the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_a_test_that_could_not_be_made_still_counts() -> None:
    assert holm([None, 0.01, None, 0.02]) == [None, pytest.approx(0.04), None, pytest.approx(0.06)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_value_and_keeps_the_order(p: list[float]) -> None:
    corrected = holm(p)
    assert all(new >= old for new, old in zip(corrected, p, strict=True))
    assert [new for _, new in sorted(zip(p, corrected, strict=True))] == sorted(corrected)
    assert min(corrected) <= min(1.0, len(p) * min(p)) + 1e-12


def test_only_common_seeds_are_paired() -> None:
    found = differences({"a": {0: 0.5, 1: 0.6, 2: 0.75}, "b": {1: 0.7, 2: 0.9, 3: 0.1}, "c": {4: 1.0}}, "a")
    assert found["b"].seeds == (1, 2)
    assert found["b"].estimate.mean == pytest.approx(0.125)
    assert found["b"].paired == pytest.approx(stats.ttest_rel([0.7, 0.9], [0.6, 0.75]).pvalue)
    assert found["b"].holm == pytest.approx(min(1, 2 * found["b"].paired))
    assert found["b"].welch == pytest.approx(stats.ttest_ind([0.7, 0.9, 0.1], [0.5, 0.6, 0.75], equal_var=False).pvalue)
    assert found["b"].detectable == pytest.approx(detectable(plain.stdev([0.1, 0.15]), 2, 2))
    assert (found["c"].seeds, found["c"].estimate, found["c"].holm, found["c"].detectable) == ((), None, None, None)
    assert "a" not in found


def test_a_run_that_diverged_gives_no_p() -> None:
    found = differences({"a": {0: 0.5, 1: 0.6}, "b": {0: math.nan, 1: 0.7}}, "a")["b"]
    assert math.isnan(found.estimate.mean)
    assert (found.paired, found.holm, found.welch, found.detectable) == (None, None, None, None)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (3, 1), (5, 3), (10, 11)])
def test_the_detectable_difference_is_found_in_four_experiments_of_five(n: int, m: int) -> None:
    size = detectable(0.02, n, m)
    by = np.random.default_rng(n).normal(size, 0.02, (20000, n))
    p = stats.ttest_1samp(by, 0, axis=1).pvalue
    assert (p < 0.05 / m).mean() == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize("n", [2, 3, 30])
def test_power_starts_at_the_level_of_the_test_and_grows(n: int) -> None:
    assert power(0.0, n, 0.01) == pytest.approx(0.01)
    powers = [power(effect, n, 0.01) for effect in np.linspace(0, 60, 40)]
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(powers))


def test_steps_are_interpolated_between_evaluations() -> None:
    assert steps_to({100: 0.2, 200: 0.4, 300: 0.8}, 0.5, True) == pytest.approx(225)
    assert steps_to({300: 1.0, 100: 3.0, 200: 2.0}, 1.5, False) == pytest.approx(250)
    assert steps_to({100: 0.2, 200: 0.4}, 0.4, True) == 200
    assert steps_to({100: 0.6, 200: 0.4}, 0.5, True) == 100
    assert steps_to({100: 0.2, 200: math.nan, 300: 0.6}, 0.4, True) == pytest.approx(200)
    assert steps_to({100: 0.2, 200: 0.4}, 0.5, True) is None
    assert steps_to({}, 0.5, True) is None


def test_the_level_lies_short_of_the_mean_whatever_its_sign() -> None:
    assert level(0.8, True) == pytest.approx(0.76)
    assert level(0.8, False) == pytest.approx(0.84)
    assert level(-2.0, True) == pytest.approx(-2.1)
