"""Tables: a learned vector for every coordinate value of an axis, or for every cell of a grid."""

from collections.abc import Sequence
from math import prod, sqrt

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.nn import functional

from lff import arguments
from lff.encodings.encoding import Encoding
from lff.positions import cells, raster


class Embed(Encoding):
    """A learned table, the encoding that ViT, Reformer and the widget captioning model come with.

    It knows the whole-numbered positions of its extent and no other: anything else raises, since a table that clamps or wraps
    gives two places one vector and says nothing.

    Args:
        extent: number of coordinate values along every axis; a number for one axis.
        depth: size of the encoding.
        join: "concat" (a table of depth / coords an axis; Reformer's Embed-2D), "sum" (a table of depth an axis; the widget
            captioning model's Embed-4D) or "cell" (one table for all cells; Embed-1D).
        scale: root mean square of the output at initialisation; 1 for Reformer, 0.02 for ViT.
    """

    def __init__(self, extent: int | Sequence[int], depth: int, *, join: str = "concat", scale: float = 1.0) -> None:
        extent = arguments.sizes("extent", extent)
        super().__init__(len(extent), depth)
        self.extent = extent
        self.join = arguments.choice("join", join, ("concat", "sum", "cell"))
        self.rms = arguments.positive("scale", scale)
        if join == "concat":
            arguments.multiple("depth", depth, self.coords, "one share an axis")
        rows = (prod(extent),) if join == "cell" else extent
        width = depth // self.coords if join == "concat" else depth
        self.tables = nn.ParameterList(nn.Parameter(torch.empty(n, width)) for n in rows)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        summed = len(self.tables) if self.join == "sum" else 1
        for table in self.tables:
            nn.init.normal_(table, std=self.rms / sqrt(summed))

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        find = raster if self.join == "cell" else cells
        indices = find(positions, self.extent).unbind(-1)
        rows = [functional.embedding(index, table) for index, table in zip(indices, self.tables, strict=True)]
        return torch.stack(rows).sum(0) if self.join == "sum" else torch.cat(rows, dim=-1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, extent={self.extent}, join={self.join!r}"
