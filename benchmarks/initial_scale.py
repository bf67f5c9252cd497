"""How much of the output of `lff.LearnableFourier` varies with the position before training, by extent over gamma.

    python benchmarks/initial_scale.py

Root mean square over a 32 x 32 grid of (output - its mean over the grid), at scale 1; the mean of 50 draws. Half a minute.
"""

import tables
import torch
from torch import Tensor

import lff
from lff.experiments.environment import environment

SEED, DRAWS, SIZE, DEPTH = 0, 50, 32, 128
EXTENTS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 64.0)


@torch.no_grad()
def varying(extent: float, *, layer_norm: bool) -> float:
    """The root mean square of what varies, with gamma = 1 and the grid filling `extent`."""
    positions = extent * lff.grid((SIZE, SIZE), normalize=True).reshape(-1, 2)

    def power() -> Tensor:
        out = lff.LearnableFourier(2, DEPTH, layer_norm=layer_norm)(positions)
        return (out - out.mean(0)).square().mean().sqrt()

    return float(torch.stack([power() for _ in range(DRAWS)]).mean())


def main() -> None:
    torch.manual_seed(SEED)
    rows = [
        {
            "extent": extent,
            "algorithm_1": varying(extent, layer_norm=False),
            "layer_norm": varying(extent, layer_norm=True),
        }
        for extent in EXTENTS
    ]
    tables.save("initial-scale", {"environment": environment(seeds=[SEED]), "rows": rows})


if __name__ == "__main__":
    main()
