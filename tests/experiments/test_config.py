import math

import pytest

from lff.experiments.config import Config, differences
from lff.experiments.problems import Problem


def test_the_reformer_schedule_has_its_published_values() -> None:
    """0.03125 min(1, s / 8000) / sqrt(max(s, 8000)): 3.494e-4 at its peak, 9.88e-5 after 100,000 steps."""
    peak = 0.03125 / math.sqrt(8000)
    config = Config(steps=100_000, rate=peak, warmup=8000, schedule="rsqrt")
    assert config.rate_at(7999) == pytest.approx(3.494e-4, rel=1e-3)
    assert config.rate_at(3999) == pytest.approx(peak / 2)
    assert config.rate_at(99_999) == pytest.approx(9.88e-5, rel=1e-3)


def test_the_cosine_warms_up_and_ends_where_it_should() -> None:
    config = Config(steps=100, rate=3e-3, warmup=10, end=1e-5)
    assert config.rate_at(0) == pytest.approx(3e-4)
    assert max(map(config.rate_at, range(100))) == pytest.approx(3e-3)
    assert config.rate_at(99) == pytest.approx(1e-5)
    assert config.rate_at(54) == pytest.approx((3e-3 + 1e-5) / 2)


def test_the_drop_is_a_tenth() -> None:
    config = Config(steps=300, rate=1e-4, schedule="drop", drop=200)
    assert config.rate_at(199) == 1e-4
    assert config.rate_at(200) == pytest.approx(1e-5)
    assert Config(schedule="constant", rate=0.5).rate_at(999) == 0.5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
        ({"batch": 10, "accumulate": 3}, "--batch must be a multiple of --accumulate, got 10 and 3"),
        ({"methods": ()}, "--methods must name at least one"),
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(Problem, match=message):
        Config(**wrong)  # type: ignore[arg-type]


def test_differences_name_what_changed() -> None:
    assert differences({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4}) == "b: 2 -> 5, c: 3 -> None, d: None -> 4"
