"""`lff bench`: ratios of speed, memory and error, each measured in one run against what a user would use instead."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from lff.experiments.bench import cpu, detection, encoders, error, hosts, reformer, vit
from lff.experiments.bench.entrants import PEER, peer_version
from lff.experiments.bench.record import about, append, flat, table
from lff.experiments.bench.row import Row
from lff.experiments.bench.turns import Bench, told
from lff.experiments.engine import launch
from lff.experiments.folder import write
from lff.experiments.problems import Problem

Case = Callable[[Bench], list[Row]]

#: What is measured on a GPU, in this order.
GPU: dict[str, Case] = {
    "vit": vit.step,
    "large": encoders.large,
    "grid": encoders.grid,
    "boxes": encoders.boxes,
    "error": error.errors,
    "reformer": reformer.step,
    "captioner": hosts.captioner,
    "detr": hosts.detr,
    "detection": detection.step,
}
#: And on a CPU, on one thread: threads that wait for each other on a busy machine would be all that is measured.
CPU: dict[str, Case] = {"grid": cpu.grid, "points": cpu.points, "error": error.errors, "vit": vit.step}


def main(out: Path | None, device: str, *, only: Sequence[str] = (), csv: Path | None = None) -> None:
    """Measures, prints a table, keeps the record in `out` and appends its rows to `csv`, where they are given.

    Args:
        out: replaced by the record, as JSON, whenever a case is done.
        device: "auto", "cpu" or "cuda".
        only: names of cases; all of them if empty.
        csv: gets a line a row, in the end.
    """
    kind = launch(device, "32").device
    cases = _chosen(GPU if kind.type == "cuda" else CPU, only)
    bench = Bench(kind) if kind.type == "cuda" else Bench(kind, blocks=25, block=0.1)
    with _one_thread(bench):
        record = {**about(kind.type), "rows": []}
        if peer_version() is None:
            _say(f"{PEER} is not installed, nor on PYTHONPATH: its rows are left out")
        start = time.perf_counter()
        for number, (name, case) in enumerate(cases.items(), 1):
            _say(f"{name}, {number} of {len(cases)}, after {time.perf_counter() - start:.0f} s")
            record["rows"] += [flat(row) for row in _measured(name, case, bench)]
            if out is not None:
                write(out, json.dumps(record, indent=1) + "\n")
        _say(f"done after {time.perf_counter() - start:.0f} s")
    if csv is not None:
        append(csv, record)
    print(table(record["rows"]))


def _chosen(cases: dict[str, Case], only: Sequence[str]) -> dict[str, Case]:
    unknown = [name for name in only if name not in cases]
    if unknown:
        raise Problem(f"--only takes {', '.join(cases)} on this device, got {', '.join(unknown)}")
    return {name: case for name, case in cases.items() if not only or name in only}


def _measured(name: str, case: Case, bench: Bench) -> list[Row]:
    """The rows of a case, or one that says why there are none."""
    try:
        return case(bench)
    except Exception as failure:  # whatever it is, it must not lose the others
        return [Row(case=name, what=name, of="", against="", failed=told(failure))]
    finally:
        if bench.gpu:
            torch.cuda.empty_cache()


@contextmanager
def _one_thread(bench: Bench) -> Iterator[None]:
    before = torch.get_num_threads()
    if not bench.gpu:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _say(text: str) -> None:
    print(f"lff bench: {text}", file=sys.stderr, flush=True)
