"""The positions of a picture's tokens: its pixels in raster order, the colours of each in turn."""

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn

import lff
from lff.encodings.encoding import Encoding


class PixelPositions(nn.Module):
    """Encodes the pixel of a token, once for the batch and all colours, beside a learned vector of the colour.

    Args:
        encoding: of (row, col), or of (row, col, colour).
        size: height and width of the picture.
        channels: colours of a pixel.
        colours: size of the colour's share; 0 for none.
        normalize: give the encoding rows and columns in (0, 1).
    """

    cells: Tensor

    def __init__(self, encoding: Encoding, size: int, channels: int, *, colours: int = 0, normalize: bool = False) -> None:
        super().__init__()
        self.encoding, self.size, self.channels = encoding, size, channels
        self.colours = nn.Parameter(torch.randn(channels, colours)) if colours else None
        extent = (size, size) if encoding.coords == 2 else (size, size, channels)
        cells = rearrange(lff.grid(extent, normalize=normalize), "... c -> (...) c")
        self.register_buffer("cells", cells, persistent=False)

    def forward(self, position_ids: Int[Tensor, "batch length"]) -> Float[Tensor, "rows length depth"]:
        # The host expands one row of numbers to the batch: then every row is the same memory.
        ids = position_ids[:1] if position_ids.stride(0) == 0 else position_ids
        if len(ids) == 1 and ids.shape[1] == self.size**2 * self.channels:  # counted from 0 by the host, so all of them
            return self._whole()
        places: Tensor = self.encoding(self.cells[ids // self.channels if self.encoding.coords == 2 else ids])
        return places if self.colours is None else self._joined(places, self.colours[ids % self.channels])

    def _whole(self) -> Float[Tensor, "1 length depth"]:
        """Of a whole picture; repeated, since the gradient of indexing would be added up a row at a time."""
        places: Tensor = self.encoding(self.cells)
        if self.encoding.coords == 2:
            places = repeat(places, "n d -> (n rgb) d", rgb=self.channels)
        places = rearrange(places, "n d -> 1 n d")
        if self.colours is None:
            return places
        return self._joined(places, repeat(self.colours, "rgb d -> 1 (n rgb) d", n=self.size**2))

    @staticmethod
    def _joined(places: Tensor, colours: Tensor) -> Tensor:
        return torch.cat([places, colours.to(places.dtype)], dim=-1)


@torch.no_grad()
def shown(positions: PixelPositions) -> Encoding:
    """The encoding of a pixel, for pictures of it; one that numbers all tokens, as a table of the first colour's."""
    if positions.encoding.coords == 2:
        return positions.encoding
    size = positions.size
    table: Tensor = positions.encoding(positions.cells)[:: positions.channels]
    own = lff.Embed((size, size), table.shape[-1], join="cell").to(table.device)
    own.tables[0].copy_(table)
    return own
