"""A training step of the paper's Reformer on one GPU: by transformers' code and by ours, and with different encodings.

    python benchmarks/reformer.py

6 layers of width 1024, 8 pictures of 12,288 tokens, bfloat16 autocast, AdamW. Each code runs a few steps alone, which gives its
memory too; the encodings run in turns, since ratios near one are asked for. Minutes on an H200, most of them compiling.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import tables
import torch

from lff.experiments.environment import environment
from lff.experiments.methods import parse
from lff.experiments.tasks.generation.bits import nats
from lff.experiments.tasks.generation.config import GenerationConfig, paper
from lff.experiments.tasks.generation.model import build

#: Steps per second that the paper states, on 32 TPU cores with 8 pictures each.
PAPER = {"Embed-2D": 1.86, "Sine-2D": 1.81, "Learnable-Fourier+MLP": 1.22}
HOSTS = {
    "transformers": {"host": "transformers", "compile": "no"},
    "ours, eager": {"host": "kept", "compile": "no"},
    "ours, compiled": {"host": "kept", "compile": "layers"},
    "ours, compiled, recomputed": {"host": "recomputed", "compile": "layers"},
}
Step = Callable[[], None]


def stepper(config: GenerationConfig, method: str, batch: int, device: torch.device) -> Step:
    """A training step as the engine makes it."""
    torch.manual_seed(0)
    model = build(config, parse(method), 3).to(device).train()
    if config.compile == "layers":
        for layer in model.host.reformer.encoder.layers:
            layer.compile(dynamic=False)
    adam = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    ids = torch.randint(256, (batch, config.size**2 * 3), device=device)

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16):
            loss = nats(model(ids), ids).mean()
        loss.backward()
        adam.step()
        adam.zero_grad()

    return step


def timed(step: Step, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def row(what: str, seconds: list[float], base: list[float], memory: float | None, published: float | None) -> dict[str, Any]:
    faster = statistics.median(b / s for b, s in zip(base, seconds, strict=True))
    median = statistics.median(seconds)
    return {
        "what": what,
        "milliseconds": 1000 * median,
        "steps": 1 / median,
        "faster": round(faster, 4),
        "memory": memory,
        "paper": published,
    }


def alone(config: GenerationConfig, method: str, batch: int, device: torch.device, repeats: int) -> tuple[list[float], float | None]:
    """Seconds of some steps after three others, and the peak of memory in GiB."""
    step = stepper(config, method, batch, device)
    for _ in range(3):
        step()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    seconds = [timed(step, device) for _ in range(repeats)]
    del step
    gc.collect()
    return seconds, torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None


def hosts(config: GenerationConfig, batch: int, device: torch.device, repeats: int) -> list[dict[str, Any]]:
    """Each alone, over transformers' own."""
    found: dict[str, tuple[list[float], float | None]] = {}
    for name, settings in HOSTS.items():
        found[name] = alone(replace(config, **settings), "Embed-2D", batch, device, repeats)  # type: ignore[arg-type]
        print(name, statistics.median(found[name][0]), found[name][1], flush=True)
    base = found["transformers"][0]
    return [row(f"Embed-2D, {name}", seconds, base, memory, None) for name, (seconds, memory) in found.items()]


def methods(config: GenerationConfig, batch: int, device: torch.device, repeats: int) -> list[dict[str, Any]]:
    """In turns, over Embed-2D, which runs twice; the memory of each alone."""
    names = ["Embed-2D", "Learnable-Fourier+MLP", "Sine-2D", "Embed-2D, again"]
    memory = {name: alone(config, name, batch, device, 2)[1] for name in names[:3]}
    steps = {name: stepper(config, name.removesuffix(", again"), batch, device) for name in names}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(3 + repeats):
        for name, step in steps.items():
            seconds[name].append(timed(step, device))
    seconds = {name: all_of_them[3:] for name, all_of_them in seconds.items()}  # the first compile
    return [row(f"{name}, ours, in turns", seconds[name], seconds["Embed-2D"], memory.get(name), PAPER.get(name)) for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8, help="pictures of a step")
    parser.add_argument("--repeats", type=int, default=20, help="steps of each that are timed")
    given = parser.parse_args()
    device = torch.device("cuda")
    rows = hosts(paper(), given.batch, device, given.repeats) + methods(paper(), given.batch, device, given.repeats)
    tables.save("reformer-cuda", {"environment": environment(device="cuda"), "rows": rows})


if __name__ == "__main__":
    main()
