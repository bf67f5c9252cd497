"""A training step of a ViT: the encoding inside a host, and the loop around it beside a bare one."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from lff.experiments.bench.row import Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench
from lff.experiments.engine import Engine, launch
from lff.experiments.fabric import Fabric
from lff.experiments.methods import parse
from lff.experiments.order import Order, requests
from lff.experiments.speed import endless, stepper
from lff.experiments.task import Task

STEP, OURS, DEFAULT = "step", "Learnable-Fourier+MLP", "Embed-1D"
LOOP, BARE = "lff's loop", "a bare PyTorch loop"


def step(bench: Bench) -> list[Row]:
    """Of the preset `mini`, compiled as CUDA graphs, or on a CPU of `demo`; on the data inside the package."""
    from lff.experiments.tasks.classification.config import demo, mini
    from lff.experiments.tasks.classification.task import Classification

    fabric = launch(bench.device.type, "bf16" if bench.gpu else "32")
    config = replace(mini(), develop=0, held=0, compile="graphs") if bench.gpu else demo()
    task = Classification(replace(config, steps=10**6), None)
    times = bench.longer().race(
        {
            (STEP, OURS): lambda: stepper(Engine(task, parse(OURS), 0, fabric)),
            (STEP, DEFAULT): lambda: stepper(Engine(task, parse(DEFAULT), 0, fabric)),
            (STEP, BARE): lambda: _bare(task, fabric),
            (STEP, AGAIN): lambda: stepper(Engine(task, parse(DEFAULT), 0, fabric)),
        }
    )
    patches = (config.image // config.patch) ** 2
    what = f"training step of a ViT, {config.layers} layers of width {config.width}, {patches} patches, batch {config.batch}"
    equal, spread = times.equal("vit", what, STEP, DEFAULT)
    looped = times.row("vit", what, (STEP, DEFAULT), (STEP, BARE), bar=at_most(1.05), spread=spread)
    return [
        times.row("vit", what, (STEP, OURS), (STEP, DEFAULT), bar=at_most(1.02), spread=spread),
        replace(looped, of=f"{DEFAULT} in {LOOP}", against=f"{DEFAULT} in {BARE}"),
        equal,
    ]


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
