"""A training step of the paper's Reformer on one GPU: by transformers' code and by ours, with different encodings and batches.

    python benchmarks/reformer.py                    # minutes on an H200, most of them compiling
    python benchmarks/reformer.py --only batches     # one part; the rows of the others stay where they are of the same commit
    python benchmarks/reformer.py --small            # every line of it on a CPU within a minute; keeps nothing unless --out

6 layers of width 1024, 8 pictures of 12,288 tokens, bfloat16 autocast, AdamW. Each code runs a few steps alone, which gives its
memory too; the encodings run in turns, since ratios near one are asked for. The record is written after every row, so a run that
is cut leaves what it has. What fails, for want of memory say, is a row that says so.
"""

import argparse
import gc
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import reformer_profile
import tables
import torch

from lff.experiments.environment import environment
from lff.experiments.methods import parse
from lff.experiments.tasks.generation.bits import nats
from lff.experiments.tasks.generation.config import GenerationConfig, paper
from lff.experiments.tasks.generation.model import build

#: Steps per second that the paper states, on 32 TPU cores with 8 pictures each.
PAPER = {"Embed-2D": 1.86, "Sine-2D": 1.81, "Learnable-Fourier+MLP": 1.22}
BASE = "Embed-2D, transformers"
SMALL = {"size": 16, "width": 64, "head": 8, "layers": 1, "heads": 2, "chunk": 32, "buckets": 12}
Step = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """A code that runs alone.

    Attributes:
        what: it is called.
        host: of the generation task.
        compiled: its layers.
        times: pictures over those of --batch.
        inside: run the backward pass inside autocast too, where reversible layers are computed again.
        tf32: let products in float32 be rounded.
        profiled: say where the time goes as well.
    """

    what: str
    host: str
    compiled: bool = False
    times: int = 1
    inside: bool = False
    tf32: bool = False
    profiled: bool = False


HOSTS = (
    Case(BASE, "transformers", profiled=True),
    Case("Embed-2D, transformers, TF32", "transformers", tf32=True),
    Case("Embed-2D, transformers, backward inside autocast", "transformers", inside=True, profiled=True),
    Case("Embed-2D, ours, eager", "kept", profiled=True),
    Case("Embed-2D, ours, compiled", "kept", compiled=True, profiled=True),
    Case("Embed-2D, ours, compiled, recomputed", "recomputed", compiled=True),
)
BATCHES = (
    Case("Embed-2D, ours, compiled, 2 times the batch", "kept", compiled=True, times=2),
    Case("Embed-2D, ours, compiled, recomputed, 4 times the batch", "recomputed", compiled=True, times=4),
    Case("Embed-2D, ours, compiled, recomputed, 8 times the batch", "recomputed", compiled=True, times=8),
)


class Bench:
    """Where and for how long it is measured, and the record.

    Args:
        small: a model for a CPU instead of the paper's on a GPU.
        batch: pictures of a step.
        repeats: steps that are timed.
        out: where the record goes; None for nowhere.
    """

    def __init__(self, *, small: bool, batch: int, repeats: int, out: Path | None) -> None:
        self.device = torch.device("cpu" if small else "cuda")
        self.config: GenerationConfig = replace(paper(), **SMALL) if small else paper()  # type: ignore[arg-type]
        self.small, self.batch, self.repeats, self.out = small, batch, repeats, out
        self.record = _of_the_same_code(out, {"environment": environment(device=self.device.type), "rows": [], "profiles": []})

    def stepper(self, method: str, case: Case) -> Step:
        """A training step as the engine makes it."""
        torch.manual_seed(0)
        model = build(replace(self.config, host=case.host), parse(method), 3).to(self.device).train()  # type: ignore[arg-type]
        for layer in model.host.reformer.encoder.layers if case.compiled else ():
            layer.compile(dynamic=False, **({"backend": "eager"} if self.small else {}))
        adam = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
        ids = torch.randint(256, (case.times * self.batch, self.config.size**2 * 3), device=self.device)

        def step() -> None:
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = nats(model(ids), ids).mean()
                if case.inside:
                    loss.backward()
            if not case.inside:
                loss.backward()
            adam.step()
            adam.zero_grad()

        return step

    def timed(self, step: Step) -> float:
        self.wait()
        start = time.perf_counter()
        step()
        self.wait()
        return time.perf_counter() - start

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def alone(self, method: str, case: Case, repeats: int) -> tuple[list[float], float | None]:
        """Seconds of some steps after three others, and the peak of memory in GiB; profiled afterwards where that is asked."""
        self.clear(case.tf32)
        step = self.stepper(method, case)
        for _ in range(3):
            step()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = [self.timed(step) for _ in range(repeats)]
        memory = torch.cuda.max_memory_allocated() / 2**30 if self.device.type == "cuda" else None
        if case.profiled:
            try:
                self.add("profiles", reformer_profile.profiled(case.what, step, self.wait, self.device))
            except Exception:  # a machine may not let its kernels be traced; the times are there
                traceback.print_exc()
        return seconds, memory

    def add(self, part: str, row: dict[str, Any]) -> None:
        """Puts a row into the record, in place of one of the same name, and writes it."""
        print(json.dumps(row), flush=True)
        rows = self.record[part]
        at = next((i for i, old in enumerate(rows) if old["what"] == row["what"]), len(rows))
        rows[at : at + 1] = [row]
        if self.out is not None:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.out.write_text(json.dumps(self.record, indent=2) + "\n", encoding="utf-8")

    def clear(self, tf32: bool = False) -> None:
        """Leaves nothing of what ran before: memory, compiled code, precision."""
        torch._dynamo.reset()
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def cases(bench: Bench, asked: Iterable[Case]) -> None:
    """Each alone, over transformers' own, by pictures."""
    for case in asked:
        pictures = case.times * bench.batch
        try:
            seconds, memory = bench.alone("Embed-2D", case, bench.repeats)
        except Exception as error:  # for want of memory, or a kernel that does not build
            lack = isinstance(error, torch.OutOfMemoryError)
            bench.add("rows", row(case.what, pictures, None, None, "too little" if lack else None, None, _told(error)))
            continue
        median = statistics.median(seconds)
        base = next((old for old in bench.record["rows"] if old["what"] == BASE and old["milliseconds"]), None)
        faster = 1.0 if case.what == BASE else base and base["milliseconds"] / base["batch"] * pictures / (1000 * median)
        bench.add("rows", row(case.what, pictures, median, faster, memory, None))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160] if str(error).strip() else ''}"


def methods(bench: Bench) -> None:
    """In turns, over Embed-2D, which runs twice; the memory of each alone."""
    names = ["Embed-2D", "Learnable-Fourier+MLP", "Sine-2D", "Embed-2D, again"]
    case = Case("in turns", "kept", compiled=True)
    memory = {name: bench.alone(name, case, 2)[1] for name in names[:3]}
    bench.clear()
    steps = {name: bench.stepper(name.removesuffix(", again"), case) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-3, bench.repeats):  # the first compile
        for name, step in steps.items():
            took = bench.timed(step)
            seconds[name] += [took] if turn >= 0 else []
    for name in names:
        faster = statistics.median(b / s for b, s in zip(seconds["Embed-2D"], seconds[name], strict=True))
        median = statistics.median(seconds[name])
        bench.add("rows", row(f"{name}, ours, in turns", bench.batch, median, faster, memory.get(name), PAPER.get(name)))


def row(
    what: str,
    pictures: int,
    seconds: float | None,
    faster: float | None,
    memory: float | str | None,
    published: float | None,
    failed: str | None = None,
) -> dict[str, Any]:
    return {
        "what": what,
        "batch": pictures,
        "milliseconds": seconds and 1000 * seconds,
        "steps": seconds and 1 / seconds,
        "pictures": seconds and pictures / seconds,
        "faster": faster and round(faster, 4),
        "memory": memory,
        "paper": published,
        "failed": failed,
    }


def _of_the_same_code(out: Path | None, new: dict[str, Any]) -> dict[str, Any]:
    """What is there already, if it was measured at the same commit on the same device; otherwise nothing."""
    if out is None or not out.exists():
        return new
    old = json.loads(out.read_text(encoding="utf-8"))
    same = all(old["environment"][key] == new["environment"][key] for key in ("commit", "device", "versions"))
    return {**old, "profiles": old.get("profiles", [])} if same and not new["environment"]["commit"].endswith("+") else new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=None, help="pictures of a step; 8, or 1 with --small")
    parser.add_argument("--repeats", type=int, default=None, help="steps of each that are timed; 20, or 2 with --small")
    parser.add_argument("--only", nargs="+", choices=("hosts", "methods", "batches"), default=("hosts", "methods", "batches"))
    parser.add_argument("--small", action="store_true", help="a small model on a CPU")
    parser.add_argument("--out", type=Path, help="the record; by default that of the docs, or none with --small")
    given = parser.parse_args()
    small = given.small
    out = given.out or (None if small else tables.ROOT / tables.RECORDS / "reformer-cuda.json")
    bench = Bench(small=small, batch=given.batch or (1 if small else 8), repeats=given.repeats or (2 if small else 20), out=out)
    parts: dict[str, Callable[[], None]] = {
        "hosts": lambda: cases(bench, HOSTS),
        "methods": lambda: methods(bench),
        "batches": lambda: cases(bench, BATCHES),
    }
    failed = []
    for name in given.only:
        try:
            parts[name]()
        except Exception:  # the others may do
            traceback.print_exc()
            failed.append(name)
    print(tables.markdown("reformer-cuda", bench.record))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
