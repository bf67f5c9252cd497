"""Forward and backward of `lff.LearnableFourier` on the CPU, against the package learnable-fourier-positional-encoding.

    python benchmarks/speed_cpu.py

One process runs three entrants in turn: lff, the peer, and the peer once more, whose ratio to itself is the noise of the machine.
The order changes from repeat to repeat, so that none always runs in the wake of the same other. Intervals are bootstrapped over
the repeats. Two to four minutes on 2 cores, which should have nothing else to do.
"""

import argparse
import importlib.metadata
import time
from itertools import cycle, islice, permutations
from typing import Any, NamedTuple

import tables
import torch
from learnable_fourier_positional_encoding import LearnableFourierPositionalEncoding
from torch import Tensor, nn

import lff
from lff.experiments.environment import environment

SEED, REPEATS, WARM_UP, RESAMPLES = 0, 60, 6, 2000


class Case(NamedTuple):
    """Positions, and the sizes of the encoding they are given."""

    name: str
    positions: Tensor
    depth: int
    features: int
    hidden: int = 32
    groups: int = 1


class Entrant(NamedTuple):
    """A module with the positions in the shape it wants, and the gradient that its output will be given."""

    encode: nn.Module
    positions: Tensor
    gradient: Tensor


def cases() -> list[Case]:
    return [
        Case("64x64 grid to 768", lff.grid((64, 64)), depth=768, features=768),
        Case("100,000 3-D points to 128", 64 * torch.rand(100_000, 3), depth=128, features=128),
        Case("12,800 boxes in 4 groups to 128", 64 * torch.rand(12_800, 4), depth=128, features=32, groups=4),
    ]


def ours(case: Case) -> Entrant:
    coords = case.positions.shape[-1]
    encode = lff.LearnableFourier(coords, case.depth, features=case.features, hidden=case.hidden, groups=case.groups)
    return Entrant(encode, case.positions, torch.randn(*case.positions.shape[:-1], case.depth))


def peer(case: Case) -> Entrant:
    """The peer wants [positions, groups, coordinates of a group]."""
    size = case.positions.shape[-1] // case.groups
    encode = LearnableFourierPositionalEncoding(case.groups, size, case.features, case.hidden, case.depth, gamma=1.0)
    positions = case.positions.reshape(-1, case.groups, size)
    return Entrant(encode, positions, torch.randn(len(positions), case.depth))


def seconds(entrant: Entrant) -> float:
    """The time of one forward and backward; gradients are dropped before it starts."""
    for parameter in entrant.encode.parameters():
        parameter.grad = None
    start = time.perf_counter()
    entrant.encode(entrant.positions).backward(entrant.gradient)
    return time.perf_counter() - start


def race(entrants: dict[str, Entrant], repeats: int) -> dict[str, Tensor]:
    """The times of every entrant, [repeats], after a warm-up that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in entrants}
    for order in islice(cycle(permutations(entrants)), WARM_UP + repeats):
        for name in order:
            times[name].append(seconds(entrants[name]))
    return {name: torch.tensor(of_one[WARM_UP:], dtype=torch.float64) for name, of_one in times.items()}


def ratio(a: Tensor, b: Tensor) -> tuple[float, list[float]]:
    """Median of a over median of b, and its 95% interval when whole repeats are drawn again with replacement."""
    drawn = torch.randint(len(a), (RESAMPLES, len(a)))
    ratios = a[drawn].quantile(0.5, dim=1) / b[drawn].quantile(0.5, dim=1)
    return float(a.quantile(0.5) / b.quantile(0.5)), [float(ratios.quantile(q)) for q in (0.025, 0.975)]


def row(case: Case, repeats: int) -> dict[str, Any]:
    """A row of the table."""
    times = race({"lff": ours(case), "peer": peer(case), "peer again": peer(case)}, repeats)
    ours_to_peer, interval = ratio(times["lff"], times["peer"])
    noise, noise_interval = ratio(times["peer again"], times["peer"])
    return {
        "case": case.name,
        "lff_ms": 1000 * float(times["lff"].quantile(0.5)),
        "peer_ms": 1000 * float(times["peer"].quantile(0.5)),
        "ratio": ours_to_peer,
        "ratio_interval": interval,
        "noise": noise,
        "noise_interval": noise_interval,
        "repeats": repeats,
        "peer": f"learnable-fourier-positional-encoding {importlib.metadata.version('learnable-fourier-positional-encoding')}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Time lff.LearnableFourier against its peer on the CPU.")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="a multiple of 6 runs every order equally often")
    repeats = parser.parse_args().repeats
    torch.manual_seed(SEED)
    rows = [row(case, repeats) for case in cases()]
    tables.save("speed-cpu", {"environment": environment(seeds=[SEED]), "rows": rows})


if __name__ == "__main__":
    main()
