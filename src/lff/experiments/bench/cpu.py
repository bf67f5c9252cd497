"""Encoders alone on a CPU, where lff is plain PyTorch: beside the peer, `torch.compile` and the byte floor."""

from collections.abc import Callable

import torch
from einops import rearrange
from torch import Tensor, nn

import lff
from lff.experiments.bench.encoders import BOTH, COPY, FLOOR, FORWARD, floor
from lff.experiments.bench.entrants import COMPILED, OURS, PEER, Peer, compiled, fourier, peer_version
from lff.experiments.bench.row import Row, at_least
from lff.experiments.bench.turns import AGAIN, Bench, Key, Work
from lff.experiments.bench.works import copy, forward, forward_backward

#: Of the copy that gives the bandwidth: more than caches hold.
COPIED = 2**28


def grid(bench: Bench, *, size: int = 64, depth: int = 768) -> list[Row]:
    """A grid of pixels, as Reformer's."""
    cells = rearrange(lff.grid((size, size)), "h w c -> (h w) c")
    return _beside(bench, "grid", f"{size}x{size} grid to {depth}, |F| {depth}, |H| 32, float32", cells, depth)


def points(bench: Bench, *, count: int = 100_000, depth: int = 128) -> list[Row]:
    """Points in space."""
    positions = 64 * torch.rand(count, 3)
    return _beside(bench, "points", f"{count:,} points, 3-D to {depth}, |F| {depth}, |H| 32, float32", positions, depth)


def _beside(bench: Bench, case: str, what: str, positions: Tensor, depth: int) -> list[Row]:
    torch.compiler.reset()
    coords, gradient = positions.shape[-1], torch.randn(len(positions), depth)
    ours = fourier(bench.device, coords, depth)
    modules: dict[str, Callable[[], nn.Module]] = {
        OURS: lambda: ours,
        AGAIN: lambda: fourier(bench.device, coords, depth),
        COMPILED: lambda: compiled(fourier(bench.device, coords, depth)),
    }
    if peer_version():
        modules[PEER] = lambda: Peer(coords, depth, features=depth)
    makers: dict[Key, Callable[[], Work]] = {
        (BOTH, name): lambda make=make: forward_backward(make(), positions, gradient)  # type: ignore[misc]
        for name, make in modules.items()
    }
    makers |= {(FORWARD, OURS): lambda: forward(ours, positions), COPY: lambda: copy(COPIED, bench.device)}
    times = bench.race(makers)
    floor(times, written=gradient.nbytes, copied=COPIED)
    equal, spread = times.equal(case, f"{BOTH}, {what}", BOTH, OURS)
    bars = {PEER: at_least(1.25)}
    others = [name for name in modules if name not in (OURS, AGAIN)]
    return [
        *(times.row(case, f"{BOTH}, {what}", (BOTH, n), (BOTH, OURS), bar=bars.get(n), spread=spread) for n in reversed(others)),
        equal,
        times.row(case, f"{FORWARD}, {what}", (FORWARD, OURS), FLOOR),
    ]
