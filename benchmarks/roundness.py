"""How round the similarity around the centre of a 64x64 grid is, before training: a ball has 1, a cross a large number.

    python benchmarks/roundness.py

The longest over the shortest distance from the centre at which similarity has fallen by half, over 360 directions and up to the
border, 31 cells away, in steps of half a cell; the median of 20 seeds, beside the least and the greatest. By half of what it is
at the centre; and, since sines of long wavelengths do not fall that far anywhere on the grid, half-way to the least similarity
that any ray meets. Between the cells of a table similarities are interpolated. Five minutes.
"""

import math
import statistics
from collections.abc import Callable
from typing import Any

import tables
import torch

import lff
from lff import analysis
from lff.experiments.environment import environment

SIZE, GAMMA, DEPTH, SEEDS, BAR = 64, 8.0, 768, range(20), 1.05
CENTRE, REACH = torch.tensor([SIZE // 2, SIZE // 2]), SIZE // 2 - 1

ENCODINGS: dict[str, Callable[[], lff.Encoding]] = {
    **{
        f"Fourier features, {count:,}": lambda count=count: lff.FourierFeatures(2, count, gamma=GAMMA)
        for count in (384, 768, 8192)
    },
    "Learnable-Fourier+MLP, its output": lambda: lff.LearnableFourier(2, DEPTH, gamma=GAMMA),
    "Sine-2D": lambda: lff.Sine(2, DEPTH),
    "Embed-2D": lambda: lff.Embed((SIZE, SIZE), DEPTH),
}


def row(name: str, make: Callable[[], lff.Encoding]) -> dict[str, Any]:
    """One encoding over all seeds; one without random weights is looked at once."""
    found = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        found.append(analysis.falloff(make(), CENTRE, REACH, steps=2 * REACH))
        if not list(make().parameters()):
            break
    half, way = [f.roundness() for f in found], [f.roundness(floor=f.least) for f in found]
    falls = "everywhere" if all(map(math.isfinite, half)) else "nowhere" if all(map(math.isnan, half)) else "not everywhere"
    return {
        "encoding": name,
        "seeds": len(found),
        "falls": falls,
        "roundness": _median(half),
        "range": _range(half),
        "way": _median(way),
        "way_range": _range(way),
    }


def _median(values: list[float]) -> float | str | None:
    if any(map(math.isnan, values)):
        return None
    middle = statistics.median(values)
    return middle if math.isfinite(middle) else "∞"


def _range(values: list[float]) -> list[float | str] | None:
    if any(map(math.isnan, values)):
        return None
    return [value if math.isfinite(value) else "∞" for value in (min(values), max(values))]


def main() -> None:
    rows = [row(name, make) for name, make in ENCODINGS.items()]
    tables.save("roundness", {"environment": environment(seeds=list(SEEDS)), "rows": rows})
    found = next(r["roundness"] for r in rows if "8,192" in r["encoding"])
    print(f"with 8,192 features {found:.4f}, to be at most {BAR}: {'met' if found <= BAR else 'not met'}")


if __name__ == "__main__":
    main()
