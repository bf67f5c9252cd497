"""Encoders alone on a GPU: points by the million, a grid beside the tables it replaces, boxes in groups."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import torch
from einops import rearrange
from torch import nn

import lff
from lff.experiments.bench.entrants import (
    COMPILED,
    LAUNCHES,
    OURS,
    PEER,
    PLAIN,
    Launches,
    Peer,
    Tables,
    compiled,
    fourier,
    peer_version,
)
from lff.experiments.bench.row import Ratio, Row, at_least, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Key, Times, Work, told
from lff.experiments.bench.works import EAGER, GRAPH, both_ways, byte_floor, copy, forward, forward_backward, peak_memory

FORWARD, BOTH = "forward", "forward + backward"
COPY, FLOOR = ("", "copy"), ("", "byte floor")


def large(bench: Bench, *, count: int = 2**20) -> list[Row]:
    """Time over the byte floor and over what plain PyTorch takes, memory over the output's own."""
    depth = 768
    what = f"{count:,} points, 3-D to {depth}, |F| 384, |H| 32, LayerNorm, bfloat16"
    positions = 1024 * torch.rand(count, 3, device=bench.device)
    gradient = torch.randn(count, depth, device=bench.device, dtype=torch.bfloat16)
    make = _modules(bench, 3, depth, layer_norm=True, features=384)
    module = cache(lambda name: make[name]())  # one for both ways, since one of them is compiled

    def both(name: str) -> Work:
        return forward_backward(module(name), positions, gradient, bench.half)

    makers: dict[Key, Callable[[], Work]] = {COPY: lambda: copy(gradient.nbytes, bench.device)}
    makers |= {(FORWARD, name): partial(lambda name: forward(module(name), positions, bench.half), name) for name in make}
    makers |= {(BOTH, name): partial(both, name) for name in make}
    times = bench.race(makers)
    floor(times, written=gradient.nbytes, copied=gradient.nbytes)
    bars = {(BOTH, PLAIN): at_least(6.0), (BOTH, COMPILED): at_least(2.5)}
    return [
        times.row("large", f"{FORWARD}, {what}", (FORWARD, OURS), FLOOR, bar=at_most(1.5)),
        *(
            times.row("large", f"{how}, {what}", (how, name), (how, OURS), bar=bars.get((how, name)))
            for how in (FORWARD, BOTH)
            for name in make
            if name != OURS
        ),
        *(_memory(f"peak memory of {BOTH}, {what}", name, partial(both, name), gradient.nbytes) for name in make),
    ]


def grid(bench: Bench, *, size: int = 64, depth: int = 768) -> list[Row]:
    """Algorithm 1 on a grid over Embed-2D's two tables."""
    what = f"{BOTH}, {size}x{size} grid to {depth}, bfloat16"
    cells = rearrange(lff.grid((size, size), device=bench.device), "h w c -> (h w) c")
    gradient = torch.randn(len(cells), depth, device=bench.device)
    embed, tables = "Embed-2D", "Embed-2D, its two tables alone"

    def ours() -> Work:
        module = fourier(bench.device, 2, depth, impl="triton")
        return forward_backward(module, cells, gradient.bfloat16(), bench.half)

    def checked() -> Work:
        return forward_backward(_embed(bench, size, depth), cells, gradient.bfloat16(), bench.half)

    def bare() -> Work:
        return forward_backward(Tables(_embed(bench, size, depth)), cells, gradient)

    times = bench.race({**both_ways(bench, {OURS: ours, tables: bare, AGAIN: bare}), (EAGER, embed): checked})
    rows = []
    for how, named in _ways(bench, what):
        equal, spread = times.equal("grid", named, how, tables)
        rows += [times.row("grid", named, (how, OURS), (how, tables), bar=at_most(1.0), spread=spread), equal]
        if how == EAGER:
            rows.append(times.row("grid", named, (how, OURS), (how, embed), bar=at_most(1.0), spread=spread))
    return rows


def boxes(bench: Bench, *, count: int = 12_800, depth: int = 128, grouped: Sequence[int] = (4, 2, 1)) -> list[Row]:
    """Boxes of widgets, (top, left, bottom, right), in groups of coordinates."""
    positions = torch.randint(100, (count, 4), device=bench.device).float()
    gradient = torch.randn(count, depth, device=bench.device, dtype=torch.bfloat16)
    rows = []
    for groups in grouped:
        what = f"{BOTH}, {count:,} boxes in groups {groups}/{4 // groups} to {depth}, |H| 32, bfloat16"
        make = _modules(bench, 4, depth, groups=groups, features=depth // groups)
        makers: dict[str, Callable[[], Work]] = {
            name: partial(lambda one: forward_backward(one(), positions, gradient, bench.half), one) for name, one in make.items()
        }
        bare = partial(forward_backward, Launches(make[OURS](), depth), positions, gradient)
        times = bench.race({**both_ways(bench, {**makers, AGAIN: makers[OURS]}), (EAGER, LAUNCHES): bare})
        bars = {PLAIN: at_least(4.0), COMPILED: at_least(1.5)}
        for how, named in _ways(bench, what):
            equal, spread = times.equal("boxes", named, how, OURS)
            others = [name for name in make if name != OURS]
            rows += [times.row("boxes", named, (how, n), (how, OURS), bar=bars.get(n), spread=spread) for n in others]
            rows.append(equal)
            if how == EAGER:
                rows.append(times.row("boxes", named, (EAGER, LAUNCHES), (EAGER, OURS)))
    return rows


def floor(times: Times, *, written: int, copied: int) -> None:
    """Adds the byte floor of an output to a race in which copies were timed."""
    if COPY in times.failed:
        times.failed[FLOOR] = times.failed[COPY]
    else:
        times.seconds[FLOOR] = byte_floor(written, copied, times.seconds[COPY])


def _modules(bench: Bench, coords: int, depth: int, **options: Any) -> dict[str, Callable[[], nn.Module]]:
    """Algorithm 1 by everyone who has it; what is compiled is compiled as if nothing had been before."""
    torch.compiler.reset()
    make = partial(fourier, bench.device, coords, depth, hidden=32, **options)
    modules: dict[str, Callable[[], nn.Module]] = {
        OURS: partial(make, impl="triton"),
        PLAIN: partial(make, impl="torch"),
        COMPILED: lambda: compiled(make(impl="torch")),
    }
    if peer_version():  # it has no LayerNorm
        sizes = {key: value for key, value in options.items() if key != "layer_norm"}
        modules[PEER] = lambda: Peer(coords, depth, **sizes).to(bench.device)
    return modules


def _memory(what: str, name: str, make: Callable[[], Work], output: int) -> Row:
    """Beyond what is there before, over the size of the output; the bar is for ours."""
    bar = at_most(1.1) if name == OURS else None
    row = Row(case="large", what=what, of=name, against="the output's size", bar=bar)
    try:
        bytes = peak_memory(make())
    except Exception as error:  # as in a race
        return replace(row, failed=told(error))
    return replace(row, ratio=Ratio(*[bytes / output] * 3), value=bytes / 1e6, base=output / 1e6, unit="MB")


def _embed(bench: Bench, size: int, depth: int) -> lff.Embed:
    return lff.Embed((size, size), depth).to(bench.device)


def _ways(bench: Bench, what: str) -> list[tuple[str, str]]:
    """Ways of running, and what their rows are called."""
    return [(how, f"{what}, {how}") for how in ((EAGER, GRAPH) if bench.gpu else (EAGER,))]
