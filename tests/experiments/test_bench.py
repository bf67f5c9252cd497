"""`lff bench`: what its numbers mean, that a failure costs one row, and what it leaves behind."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import lff
from lff.experiments import bench
from lff.experiments.bench import chart, cpu, detection, encoders, entrants, error, hosts, record, reformer, works
from lff.experiments.bench.row import Bar, Ratio, Row, at_least, at_most, paired
from lff.experiments.bench.turns import AGAIN, Bench
from lff.experiments.problems import Problem

QUICK = Bench(torch.device("cpu"), blocks=3, block=0.001)


def test_the_byte_floor_counts_what_a_copy_reads_and_writes() -> None:
    # A copy moves every byte twice; the floor only writes.
    assert works.byte_floor(100, 100, [2.0, 4.0]) == [1.0, 2.0]
    assert works.byte_floor(50, 200, [2.0]) == [0.25]
    written = 2**20 * 768 * 2
    assert works.byte_floor(written, written, [2 * written / 4.24e12]) == pytest.approx([0.38e-3], rel=0.01)


def test_errors_are_of_the_part_that_varies_with_the_position() -> None:
    reference = torch.tensor([[101.0], [99.0]]).double()
    assert error.relative_error(reference + 0.1, reference) == pytest.approx(0.1)


def test_rounding_alone_costs_half_a_unit_in_the_last_place_at_most() -> None:
    # bfloat16 has 8 bits: between 1 and 2 its numbers lie 2^-7 apart.
    reference = torch.tensor([[1 + 2**-8], [-1 - 2**-8]]).double()
    assert error.rounding(reference, torch.bfloat16) == pytest.approx(2**-8 / (1 + 2**-8))
    assert error.rounding(torch.tensor([[1.5], [-1.5]]).double(), torch.bfloat16) == 0


def test_a_drift_that_both_feel_cancels() -> None:
    slow = [float(n) for n in range(1, 16)]
    assert paired([2 * second for second in slow], slow) == Ratio(2.0, 2.0, 2.0)


def test_the_interval_of_a_median_leaves_out_what_is_rare_and_narrows_with_repeats() -> None:
    ratio = paired([100.0, *(float(n) for n in range(1, 15))], [1.0] * 15)
    assert ratio == Ratio(8.0, 4.0, 12.0)  # the 4th and the 12th of 15: outside of both with a probability of 0.035
    many = paired([float(n) for n in range(1, 101)], [1.0] * 100)
    assert (many.low, many.high) == (41.0, 60.0)


@pytest.mark.parametrize(
    ("ratio", "bar", "spread", "verdict"),
    [
        (1.5, at_most(1.5), None, "met"),
        (1.51, at_most(1.5), None, "not met"),
        (5.9, at_least(6.0), None, "not met"),
        (6.0, at_least(6.0), 0.3, "met"),
        (1.009, at_most(1.005), 0.006, "met within the spread"),
        (1.012, at_most(1.005), 0.006, "not met"),  # beyond the bar by more than the spread
        (1.008, at_most(1.005), 0.004, "not met"),  # the bar is further from one than the spread
        (1.21, at_least(1.25), 0.3, "met within the spread"),
        (7.0, None, None, ""),
    ],
)
def test_a_bar_nearer_to_one_than_the_spread_holds_within_the_spread(
    ratio: float, bar: Bar | None, spread: float | None, verdict: str
) -> None:
    row = Row(case="c", what="w", of="a", against="b", ratio=Ratio(ratio, ratio, ratio), bar=bar, spread=spread)
    assert row.verdict == verdict


def test_two_equal_runs_give_the_spread() -> None:
    times = QUICK.race({("eager", name): lambda: torch.zeros(1).sin for name in ("a", AGAIN)})
    times.seconds[("eager", "a")], times.seconds[("eager", AGAIN)] = [1.0, 1.0, 1.0], [1.02, 1.0, 0.97]
    row, spread = times.equal("c", "w", "eager", "a")
    assert row.of == AGAIN
    assert spread == pytest.approx(0.03)


def _out_of_memory() -> Callable[[], object]:
    raise torch.OutOfMemoryError("tried to allocate 5 GiB")


def _breaks_later() -> Callable[[], object]:
    calls = iter(range(5))
    return lambda: next(calls)


@pytest.mark.parametrize("make", [_out_of_memory, _breaks_later])
def test_an_entrant_that_fails_costs_only_its_own_rows(make: Callable[[], Callable[[], object]]) -> None:
    fine, bad = ("eager", "fine"), ("eager", "bad")
    times = QUICK.race({bad: make, fine: lambda: torch.zeros(1).sin})
    assert len(times.seconds[fine]) == 3
    row = times.row("c", "w", bad, fine, bar=at_least(4.0))
    assert row.ratio is None
    assert row.verdict.startswith("failed: bad: ")
    assert times.row("c", "w", fine, fine).ratio == Ratio(1.0, 1.0, 1.0)


def test_tables_alone_give_what_the_checked_encoding_gives() -> None:
    for join, coords in (("concat", 2), ("sum", 4)):
        embed = lff.Embed((8,) * coords, 16, join=join)
        positions = torch.randint(8, (5, coords)).float()
        torch.testing.assert_close(entrants.Tables(embed)(positions), embed(positions))


def test_the_peer_computes_algorithm_1() -> None:
    ours, peer = lff.LearnableFourier(4, 12, features=6, hidden=5, groups=2), entrants.Peer(4, 12, features=6, hidden=5, groups=2)
    weights = [p.detach() for p in ours.parameters()]
    for parameter, weight in zip(peer.parameters(), weights, strict=True):
        parameter.data = weight
    positions = torch.rand(7, 4)
    torch.testing.assert_close(peer(positions), ours(positions))
    assert entrants.peer_version() == "0.0.1"


#: Changes of the paper's settings.
SMALL_DETR = {"backbone": "small", "stride": 8, "width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "queries": 9}


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # the compiler's own; and that no GPU is there for the kernels
@pytest.mark.parametrize(
    ("case", "sizes", "count"),
    [
        (encoders.large, {"count": 64}, 11),
        (encoders.grid, {"size": 4, "depth": 16}, 3),
        (encoders.boxes, {"count": 32, "depth": 16, "grouped": (2,)}, 5),
        (hosts.captioner, {"screens": 2, "boxes": 5}, 2),
        (hosts.detr, {"images": 2, "size": 5, "width": 32}, 4),
        (reformer.step, {"batch": 1, "side": 16, "layers": 1, "width": 64}, 2),
        (detection.step, {"images": 3, "size": (32, 48), **SMALL_DETR}, 2),
        (cpu.grid, {"size": 4, "depth": 16}, 4),
    ],
    ids=lambda value: getattr(value, "__module__", ""),
)
def test_what_is_measured_on_a_gpu_runs_in_small_on_a_cpu(
    case: Callable[..., list[Row]], sizes: dict[str, Any], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "peak_memory", lambda work: work() or 2 * 64 * 768)
    monkeypatch.setattr(cpu, "COPIED", 2**10)
    rows = case(QUICK, **sizes)
    assert len(rows) == count
    assert [row.failed for row in rows if row.failed] == []
    assert all(row.ratio is not None and row.ratio.low <= row.ratio.median <= row.ratio.high for row in rows)


def made() -> dict[str, Any]:
    """A record of four rows."""
    forward: Any = {"case": "a", "what": "forward, 10 points, |F| 4", "base": 1.0, "unit": "ms"}
    memory: Any = {"case": "b", "what": "memory", "against": "output"}
    rows = [
        Row(**forward, of="lff", against="floor", ratio=Ratio(1.2, 1.1, 1.3), value=1.2, bar=at_most(1.5)),
        Row(**forward, of="peer", against="lff", ratio=Ratio(3.0, 2.9, 3.1), value=3.0, bar=at_least(4.0)),
        Row(**memory, of="lff", ratio=Ratio(1.0, 1.0, 1.0), value=1611.0, base=1611.0, unit="MB"),
        Row(**memory, of="peer", failed="OutOfMemoryError: 5 GiB"),
    ]
    found = {"command": "lff bench", "commit": "abc", "versions": {"torch": "2.0"}, "device": "A GPU", "threads": 1, "seeds": []}
    return {"date": "2026-01-02T03:04:05+00:00", "environment": found, "rows": [record.flat(row) for row in rows]}


def test_the_table_says_what_was_measured_and_whether_it_is_enough() -> None:
    lines = record.table(made()["rows"]).splitlines()
    assert lines[2] == r"| forward, 10 points, \|F\| 4 | lff | floor | 1.2 | 1.1 to 1.3 | 1.2 / 1 ms | ≤ 1.5 | - | met |"
    assert lines[3] == "| the same | peer | lff | 3 | 2.9 to 3.1 | 3 / 1 ms | ≥ 4 | - | not met |"
    assert lines[4] == "| memory | lff | output | 1 | - | 1,611 / 1,611 MB | - | - | - |"
    assert lines[5] == "| the same | peer | output | - | - | - | - | - | failed: OutOfMemoryError: 5 GiB |"


def test_the_csv_file_grows_by_a_line_a_row_with_what_a_number_needs(tmp_path: Path) -> None:
    file = tmp_path / "results" / "benchmarks.csv"
    record.append(file, made())
    record.append(file, {**made(), "date": "2027-01-02T03:04:05+00:00"})
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["date"][:4] for row in rows] == ["2026"] * 4 + ["2027"] * 4
    first = rows[0]
    shared = {"device": "A GPU", "commit": "abc", "versions": "torch 2.0", "command": "lff bench"}
    own = {"what": "forward, 10 points, |F| 4", "ratio": "1.2", "low": "1.1", "sense": "at most", "bar": "1.5", "verdict": "met"}
    assert {key: first[key] for key in (*shared, *own)} == shared | own


def test_a_picture_knows_the_record_that_it_shows(tmp_path: Path) -> None:
    file, shown = tmp_path / "bench.png", made()
    assert chart.digest_of(file) is None
    chart.draw(shown, file)
    assert chart.digest_of(file) == chart.digest(shown)
    shown["rows"][0]["ratio"] = 1.3
    assert chart.digest_of(file) != chart.digest(shown)


def test_one_case_runs_by_its_name_and_leaves_a_record_and_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bench.CPU, "error", lambda place: error.errors(place, count=64))
    threads = torch.get_num_threads()
    bench.main(tmp_path / "bench.json", "cpu", only=("error",), csv=tmp_path / "bench.csv")
    assert torch.get_num_threads() == threads
    kept = json.loads((tmp_path / "bench.json").read_text())
    assert [row["case"] for row in kept["rows"]] == ["error", "error"]
    assert 0 < kept["rows"][1]["ratio"] < 1e-4 < kept["rows"][0]["ratio"] < 1e-2  # float32, bfloat16
    assert "1 threads" in kept["environment"]["device"]
    assert len((tmp_path / "bench.csv").read_text().splitlines()) == 3
    shown = capsys.readouterr()
    assert "| relative error" in shown.out
    assert "error, 1 of 1" in shown.err


def test_a_case_that_breaks_is_a_row_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(place: Bench) -> list[Row]:
        raise RuntimeError("no such kernel")

    fine = Row(case="fine", what="w", of="a", against="b", ratio=Ratio(1.0, 1.0, 1.0))
    monkeypatch.setattr(bench, "CPU", {"broken": broken, "fine": lambda place: [fine]})
    bench.main(tmp_path / "bench.json", "cpu")
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert [(row["case"], row["verdict"]) for row in rows] == [("broken", "failed: RuntimeError: no such kernel"), ("fine", "")]


def test_a_case_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(Problem, match="--only takes grid, points, error, vit on this device, got fast"):
        bench.main(None, "cpu", only=("fast",))


def test_a_missing_peer_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench, "peer_version", lambda: None)
    monkeypatch.setattr(bench, "CPU", {})
    bench.main(None, "cpu")
    assert "learnable-fourier-positional-encoding is not installed" in capsys.readouterr().err
