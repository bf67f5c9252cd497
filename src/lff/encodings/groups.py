"""The same encoder over groups of coordinates (Algorithm 1, line 3), and over cells numbered in raster order."""

import math
from collections.abc import Sequence

from jaxtyping import Float, Num
from torch import Tensor

from lff import arguments
from lff.encodings.encoding import Encoding
from lff.positions import raster


class Grouped(Encoding):
    """Encodes each of `groups` groups of coordinates by the same encoder and concatenates the results.

    A box (top, left, bottom, right) in 2 groups is its two corners, in 4 groups its four sides.

    Args:
        encoder: encodes one group; its weights are shared by all.
        groups: number of groups, G.
    """

    def __init__(self, encoder: Encoding, groups: int) -> None:
        super().__init__(encoder.coords * arguments.whole("groups", groups), encoder.depth * groups)
        self.encoder, self.groups, self.rms = encoder, groups, encoder.rms

    @staticmethod
    def split(coords: int, depth: int, groups: int) -> tuple[int, int]:
        """Coordinates and depth of one group."""
        for name, value in (("coords", coords), ("depth", depth)):
            arguments.multiple(name, value, arguments.whole("groups", groups), f"groups={groups}")
        return coords // groups, depth // groups

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        one = self.groups == 1
        encoded: Tensor = self.encoder(positions if one else positions.reshape(-1, self.encoder.coords))
        return encoded if one else encoded.reshape(*positions.shape[:-1], self.depth)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, groups={self.groups}"


class Flattened(Encoding):
    """Encodes a cell of a grid by its number in raster order, as if the grid were a sequence (the paper's Sine-1D, Embed-1D).

    Args:
        encoder: encodes one coordinate.
        extent: cells along every axis.
    """

    def __init__(self, encoder: Encoding, extent: Sequence[int]) -> None:
        self_extent = arguments.sizes("extent", extent)
        super().__init__(len(self_extent), encoder.depth)
        if encoder.coords != 1:
            raise ValueError(f"encoder must take one coordinate, got one that takes {encoder.coords}")
        self.encoder, self.extent, self.rms = encoder, self_extent, encoder.rms

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        encoded: Tensor = self.encoder(raster(positions, self.extent))
        return encoded

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, extent={self.extent}, cells={math.prod(self.extent)}"
