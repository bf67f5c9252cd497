"""A training step of the paper's Reformer on pictures of 64x64x3 read as 12,288 tokens: the generation task's own."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import nn

import lff
from lff.experiments.bench.entrants import Tables
from lff.experiments.bench.row import Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Work
from lff.experiments.bench.works import EAGER, training_step
from lff.experiments.methods import parse

OURS, TABLES = "Learnable-Fourier+MLP", "Embed-2D"


def step(bench: Bench, *, batch: int = 8, side: int = 64, layers: int = 6, width: int = 1024) -> list[Row]:
    """At the paper's size by default, with compiled layers on a GPU."""
    from lff.experiments.tasks.generation.bits import nats
    from lff.experiments.tasks.generation.config import paper
    from lff.experiments.tasks.generation.model import build

    config = replace(paper(), size=side, width=width, layers=layers, head=width // 16)
    ids = torch.randint(256, (batch, 3 * side * side), device=bench.device)

    def maker(method: str, change: Callable[[nn.Module], nn.Module]) -> Work:
        torch.manual_seed(0)
        model = build(config, parse(method), 3)
        model.positions.encoding = change(model.positions.encoding)  # type: ignore[assignment]
        for layer in model.host.reformer.encoder.layers if bench.gpu else ():
            layer.compile(dynamic=False)
        return training_step(model.to(bench.device).train(), lambda host: nats(host(ids), ids).mean(), bench.half)

    def bare(encoding: nn.Module) -> nn.Module:
        assert isinstance(encoding, lff.Embed)
        return Bare(encoding)

    makers = {
        (EAGER, OURS): partial(maker, OURS, lambda encoding: encoding),
        (EAGER, TABLES): partial(maker, TABLES, bare),
        (EAGER, AGAIN): partial(maker, TABLES, bare),
    }
    times = bench.race(makers)
    how = ", layers compiled" if bench.gpu else ""
    what = f"training step of a Reformer, {layers} layers of width {width}, batch {batch} x {3 * side * side:,}, bfloat16{how}"
    equal, spread = times.equal("reformer", what, EAGER, TABLES)
    return [times.row("reformer", what, (EAGER, OURS), (EAGER, TABLES), bar=at_most(1.005), spread=spread), equal]


class Bare(Tables):
    """Tables that say how many coordinates they take, as an encoding does.

    Args:
        embed: with one table an axis.
    """

    def __init__(self, embed: lff.Embed) -> None:
        super().__init__(embed)
        self.coords = embed.coords
