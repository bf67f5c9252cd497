"""`lff bench`: ratios of speed, each measured in one run against what a user would use instead, on the device that is there."""

import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from lff.experiments.engine import Engine, launch
from lff.experiments.environment import environment
from lff.experiments.folder import write
from lff.experiments.methods import parse
from lff.experiments.order import Order, requests
from lff.experiments.speed import endless, in_turns, stepper
from lff.experiments.task import Task

OURS, DEFAULT = "Learnable-Fourier+MLP", "Embed-1D"


def main(out: Path | None, device: str) -> None:
    """Measures, prints a table, and keeps the record in `out` if there is one."""
    from lff.experiments.tasks.classification.config import demo, mini
    from lff.experiments.tasks.classification.task import Classification

    fabric = launch(device, "bf16" if torch.cuda.is_available() and device != "cpu" else "32")
    gpu = fabric.device.type == "cuda"
    config = replace(mini(), develop=0, held=0, compile="graphs") if gpu else demo()
    task = Classification(replace(config, steps=10**6), None)
    works = {
        "ours": stepper(Engine(task, parse(OURS), 0, fabric)),
        "default": stepper(Engine(task, parse(DEFAULT), 0, fabric)),
        "default, bare loop": _bare(task, fabric),
        "default, again": stepper(Engine(task, parse(DEFAULT), 0, fabric)),
    }
    seconds = in_turns(works, fabric.device, blocks=15)
    patches = (config.image // config.patch) ** 2
    size = f"ViT, {config.layers} layers of width {config.width}, {patches} patches, batch {config.batch}"
    rows = [
        _row(f"training step of a {size}", OURS, "ours", DEFAULT, "default", seconds),
        _row("the same step", "lff's loop", "default", "a bare PyTorch loop", "default, bare loop", seconds),
        _row("the same step", DEFAULT, "default, again", "itself", "default", seconds),
    ]
    print("| What | Of | Against | Ratio, median | Range | Milliseconds |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        low, high = row["range"]
        print(
            f"| {row['what']} | {row['of']} | {row['against']} | {row['ratio']:.3f} | {low:.3f} to {high:.3f} | {row['ms']:.2f} |"
        )
    if out is not None:
        record = {"environment": environment(device=fabric.device.type), "rows": rows}
        write(out, json.dumps(record, indent=1) + "\n")


def _row(what: str, of: str, ours: str, against: str, theirs: str, seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Ratios of neighbouring blocks, so that what drifts slowly cancels."""
    ratios = sorted(a / b for a, b in zip(seconds[ours], seconds[theirs], strict=True))
    quarter = len(ratios) // 4
    return {
        "what": what,
        "of": of,
        "against": against,
        "ratio": statistics.median(ratios),
        "range": [ratios[quarter], ratios[-1 - quarter]],
        "ms": 1000 * statistics.median(seconds[ours]),
    }


def _bare(task: Task[Any], fabric: Fabric) -> Callable[[], object]:
    """What one would write without an engine: the same model, data and optimiser, and nothing that a long run needs."""
    config, device = task.config, fabric.device
    torch.manual_seed(0)
    model = task.model(parse(DEFAULT)).to(device)
    groups = task.groups(model)
    adam = torch.optim.AdamW(groups, config.rate, config.betas, config.eps, config.weight_decay, fused=True)
    if config.compile != "no":
        model.compile(mode="reduce-overhead" if config.compile == "graphs" else None)
    order = Order(task.samples, config.batch, 0)

    def batches() -> Iterator[Any]:
        return task.batches(requests(order, 0, config.steps, 1, 0, 1), device)

    data = endless(batches)
    half = torch.autocast("cuda", torch.bfloat16) if config.precision == "bf16" else nullcontext()

    def step() -> None:
        with half:
            loss = task.loss(model, next(data))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        adam.step()
        adam.zero_grad()

    return step
