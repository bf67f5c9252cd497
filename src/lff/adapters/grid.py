"""What a patch model adds to its tokens after a swap: the encoding of every patch's place, for any number of patches."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from lff import arguments
from lff.adapters.shared import remembered
from lff.encodings.encoding import Encoding
from lff.positions import grid, rescale

CLASS_TOKEN = ("keep", "zero")
UNSEEN = ("rescale", "extend", "interpolate")


class GridPositions(nn.Module):
    """The encoding on a grid of patches, made once for a whole batch, with rows of its own for the tokens in front.

    While the model evaluates, what was made is given again until something changes that decides it (`lff.adapters.shared`).

    Args:
        encoding: of (row, col).
        size: the grid that was trained, (height, width) in patches.
        normalize: give the encoding positions in (0, 1) instead of patch indices.
        unseen: "rescale" asks for another size inside the trained extent, "extend" beyond it; "interpolate" asks at the
            trained size and resizes what it gets bicubically, which is all that a table can do. Rescaling and extending are the
            same when normalising.
        prefix: what is added to the tokens in front (class, distillation, registers): [tokens, depth].
        class_token: "keep" learns the prefix on, "zero" adds nothing to those tokens.
    """

    def __init__(
        self,
        encoding: Encoding,
        size: tuple[int, int],
        *,
        normalize: bool = False,
        unseen: str = "rescale",
        prefix: Float[Tensor, "tokens depth"],
        class_token: str = "keep",
    ) -> None:
        super().__init__()
        self.encoding, self.size, self.normalize = encoding, size, normalize
        self.unseen = arguments.choice("unseen", unseen, UNSEEN)
        keep = arguments.choice("class_token", class_token, CLASS_TOKEN) == "keep"
        self.tokens = len(prefix)
        self.prefix = nn.Parameter(prefix.detach().clone()) if keep and len(prefix) else None
        self.train(encoding.training)

    def positions(self, height: int, width: int, device: torch.device) -> Float[Tensor, "height width 2"]:
        """Of every patch of a grid of this size."""
        if self.normalize:
            return grid((height, width), normalize=True, device=device)
        cells = grid((height, width), device=device)
        return rescale(cells, (height, width), self.size) if self.unseen == "rescale" else cells

    def forward(self, height: int, width: int) -> Float[Tensor, "1 tokens_and_patches depth"]:
        return remembered(self, lambda: self._encode(height, width), height * width, height, width)

    def _encode(self, height: int, width: int) -> Float[Tensor, "1 tokens_and_patches depth"]:
        device = next((t.device for t in (*self.parameters(), *self.buffers())), torch.device("cpu"))
        patches = rearrange(self._patches(height, width, device), "h w d -> 1 (h w) d")
        if self.prefix is not None:
            return torch.cat([rearrange(self.prefix, "t d -> 1 t d"), patches.to(self.prefix.dtype)], dim=1)
        return nn.functional.pad(patches, (0, 0, self.tokens, 0)) if self.tokens else patches

    def _patches(self, height: int, width: int, device: torch.device) -> Float[Tensor, "height width depth"]:
        if self.unseen != "interpolate" or (height, width) == self.size:
            encoded: Tensor = self.encoding(self.positions(height, width, device))
            return encoded
        trained = rearrange(self.encoding(self.positions(*self.size, device)), "h w d -> 1 d h w")
        resized = nn.functional.interpolate(trained, (height, width), mode="bicubic", align_corners=False)
        return rearrange(resized, "1 d h w -> h w d")

    def extra_repr(self) -> str:
        return f"size={self.size}, normalize={self.normalize}, unseen={self.unseen!r}, tokens={self.tokens}"
