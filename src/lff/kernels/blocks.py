"""Tile sizes of every kernel, in one place to tune. Powers of two; those that enter a `tl.dot` are at least 16."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Blocks:
    """Positions, frequencies, hidden units and outputs that a program works on at once, and its warps and pipeline stages."""

    rows: int
    freqs: int = 16
    units: int = 16
    depth: int = 16
    warps: int = 4
    stages: int = 2
    #: The most that a thread may have, for more programs at once; None leaves it to the compiler.
    registers: int | None = None

    def options(self, rows: int) -> dict[str, Any]:
        """How to launch: with fewer warps for fewer rows, and with multiply-adds fused, whatever the default of Triton is."""
        warps = min(self.warps, max(4, self.warps * rows // self.rows))
        most = {} if self.registers is None else {"maxnreg": self.registers}
        return {"num_warps": warps, "num_stages": self.stages, "enable_fp_fusion": True, **most}


# Chosen for an H200 by the instructions and registers of the compiled kernels at |F| = 384, |H| = 32, D = 768, bfloat16:
# with the next larger tile a kernel spills, with the next smaller one it needs more instructions a position.
BLOCKS = {
    "features": Blocks(rows=64, freqs=64),
    "features_weights": Blocks(rows=64, freqs=64),
    "features_positions": Blocks(rows=64, freqs=64),
    "mlp": Blocks(rows=128, freqs=32, depth=64, stages=3, registers=128),
    "mlp_rows": Blocks(rows=64, freqs=64, depth=64, stages=4),
    "mlp_weights": Blocks(rows=64, depth=128, stages=3),
    "dense": Blocks(rows=64, freqs=32, units=64),
    "dense_weights": Blocks(rows=32, freqs=64, units=64, stages=1),
    "dense_positions": Blocks(rows=64, freqs=32, units=64),
    "fold": Blocks(rows=16, freqs=32),
    "add_up": Blocks(rows=256, freqs=16, warps=8),
}

#: The widest hidden layer that a program holds in registers; beyond it the hidden activations, [N, |H|], pass through memory.
WIDEST = 128


def cover(size: int, block: int) -> int:
    """How many blocks cover a size."""
    return -(-size // block)


def power_of_2(size: int, least: int = 1) -> int:
    """The smallest power of two that is no less than a size, nor than `least`."""
    return max(least, 1 << (size - 1).bit_length())


def within(block: int, size: int) -> int:
    """A block that is no larger than it must be for a size."""
    return min(block, power_of_2(size, 16))


def rows_at_once(
    name: str, rows: int, programs: int, *, units: int = 16, dtype: torch.dtype = torch.bfloat16, freqs: int | None = None
) -> int:
    """Positions in a tile of the named kernel.

    More where the tile has fewer frequencies than it could. Fewer where the hidden layer is wide or in float32, which fills the
    registers, and where half of the programs or more would have no tile.
    """
    tile = BLOCKS[name]
    most = tile.rows if freqs is None else tile.rows * tile.freqs // freqs
    block = min(most, max(16, (2048 if dtype == torch.float32 else 4096) // units))
    while block > 16 and 2 * cover(rows, block) <= programs:
        block //= 2
    return block


def split_rows(
    name: str, rows: int, programs: int, *, units: int = 16, dtype: torch.dtype = torch.bfloat16, freqs: int | None = None
) -> tuple[int, int, int]:
    """Rows in a tile, rows in a program's share, and how many shares: each is whole tiles, and none is empty."""
    block = rows_at_once(name, rows, programs, units=units, dtype=dtype, freqs=freqs)
    share = cover(cover(rows, block), programs) * block
    return block, share, cover(rows, share)
