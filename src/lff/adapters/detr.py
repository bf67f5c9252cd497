"""transformers' DETR, Conditional DETR, Deformable DETR and RT-DETR: the module that makes their positions is replaced.

They add its output to the queries and keys of every encoder layer (RT-DETR: of its one attention layer), and to the keys of
cross-attention.
"""

import inspect
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lff.adapters.host import Options, Swapped, Trained, check, moved, settle
from lff.adapters.shared import remembered
from lff.encodings.encoding import Encoding
from lff.positions import grid, grid_from_mask


class MaskPositions(nn.Module, Swapped):
    """Encodes the cells of padded feature maps, once for the batch where no image is padded.

    Args:
        encoding: of (row, col).
        normalize: give the encoding (0, 1] as DETR counts it, the host's own way; otherwise cells from 0.
        host: what it replaces, kept for the way back.
    """

    def __init__(self, encoding: Encoding, *, normalize: bool, host: nn.Module) -> None:
        super().__init__()
        self.encoding, self.normalize, self.first, self.flat = encoding, normalize, _first(host), _flat(host)
        self._host = (host,)  # in a tuple, so that it is no submodule
        self.train(encoding.training)

    def encode(self, mask: Bool[Tensor, "batch height width"]) -> Float[Tensor, "batch height width depth"]:
        """One encoding for all images unless a mask differs, which only its data shows.

        So they are not looked at on a GPU: the processor would have to wait for all that comes before in a step, and the fused
        kernel takes less than that.
        """
        if len(mask) > 1 and mask.device.type == "cpu" and not torch.compiler.is_compiling() and bool(mask.all()):
            return self.whole(mask).expand(len(mask), -1, -1, -1)
        encoded: Tensor = self.encoding(_positions(mask, self.normalize, self.first))
        return encoded

    def whole(self, mask: Bool[Tensor, "batch height width"]) -> Float[Tensor, "1 height width depth"]:
        """Of maps that nothing of is padded: all alike, and remembered while the model evaluates."""
        _, height, width = mask.shape

        def make() -> Tensor:
            encoded: Tensor = self.encoding(_positions(mask[:1], self.normalize, self.first))
            return encoded

        return remembered(self, make, height * width, height, width, mask.device)

    def forward(self, *args: Any, **kwargs: Any) -> Float[Tensor, "..."]:
        """[batch, depth, height, width], or [batch, cells, depth] where that is what the host's own module gives.

        transformers 5 gives shape, device, dtype and mask; transformers 4 gives the feature map or pixels, and the mask.
        """
        if "shape" in kwargs:
            shape, device, dtype, mask = kwargs["shape"], kwargs["device"], kwargs["dtype"], kwargs.get("mask")
        else:
            like = args[0] if args else kwargs["pixel_values"]
            mask = args[1] if len(args) > 1 else kwargs.get("pixel_mask", kwargs.get("mask"))
            shape, device, dtype = like.shape, like.device, like.dtype
        if mask is None:
            mask = torch.ones(1, *shape[-2:], dtype=torch.bool, device=device)
            encoded = self.whole(mask).expand(shape[0], -1, -1, -1)
        else:
            encoded = self.encode(mask.bool())
        return rearrange(encoded.to(dtype), "b h w d -> b (h w) d" if self.flat else "b h w d -> b d h w")

    def undo(self, parent: nn.Module, name: str) -> None:
        (host,) = self._host
        setattr(parent, name, moved(host, next(parent.parameters())))


class MapPositions(MaskPositions):
    """The same for RT-DETR, which has no mask and wants [1, cells, depth]."""

    def forward(self, *args: Any, **kwargs: Any) -> Float[Tensor, "1 cells depth"]:
        (height, width), device = (kwargs["height"], kwargs["width"]), kwargs["device"]

        def make() -> Tensor:
            made: Tensor = self.encoding(grid((height, width), normalize=self.normalize, device=device))
            return made

        encoded = remembered(self, make, height * width, height, width, device)
        return rearrange(encoded.to(kwargs["dtype"]), "h w d -> 1 (h w) d")


def trained(model: nn.Module, name: str, options: Options) -> Trained:
    """What the host makes of a 32 x 32 map without padding."""
    host = model.get_submodule(name)
    normalize = _normalize(host, options)
    device = next(model.parameters()).device
    mask = torch.ones(1, 32, 32, dtype=torch.bool, device=device)
    table = _own(host, mask)
    if _is_map(host):
        return Trained(grid((32, 32), normalize=normalize, device=device), table)
    return Trained(_positions(mask, normalize, _first(host))[0], table)


@torch.no_grad()
def _own(host: nn.Module, mask: Bool[Tensor, "1 height width"]) -> Float[Tensor, "height width depth"]:
    """What the host's own module gives, whatever it is called with and whichever way round it answers."""
    _, height, width = mask.shape
    if _is_map(host):
        table: Tensor = host(width=width, height=height, device=mask.device, dtype=torch.float32)
        return rearrange(table, "1 (h w) d -> h w d", h=height)
    table = _called(host, mask)
    return rearrange(table, "1 (h w) d -> h w d", h=height) if table.ndim == 3 else rearrange(table, "1 d h w -> h w d")


def _called(host: nn.Module, mask: Bool[Tensor, "1 height width"]) -> Tensor:
    shape = torch.Size((1, _depth(host), *mask.shape[1:]))
    if "shape" in inspect.signature(host.forward).parameters:
        table: Tensor = host(shape=shape, device=mask.device, dtype=torch.float32, mask=mask)
    else:
        table = host(torch.zeros(shape, device=mask.device), mask)
    return table


@torch.no_grad()
def _flat(host: nn.Module) -> bool:
    """Whether the host's module gives cells in a row, as some versions of transformers 5 do, or a map."""
    device = next((p.device for p in host.parameters()), torch.device("cpu"))
    return not _is_map(host) and _called(host, torch.ones(1, 2, 3, dtype=torch.bool, device=device)).ndim == 3


def put(model: nn.Module, name: str, encoding: Encoding, options: Options) -> None:
    """Puts the encoding in place of the module `name` of `model`."""
    host = model.get_submodule(name)
    check(encoding, depth=_depth(host), coords=2, host=type(host).__name__)
    kind = MapPositions if _is_map(host) else MaskPositions
    parent, _, attribute = name.rpartition(".")
    position = kind(settle(encoding, model), normalize=_normalize(host, options), host=host)
    setattr(model.get_submodule(parent), attribute, position)


def _positions(mask: Bool[Tensor, "batch height width"], normalize: bool, first: float) -> Float[Tensor, "batch height width 2"]:
    """(0, 1] as the host counts it, or cells from 0."""
    return grid_from_mask(mask, normalize=True, first=first, eps=1e-6) if normalize else grid_from_mask(mask)


def _first(host: nn.Module) -> float:
    """DETR puts a normalised cell at its far edge, Deformable DETR at its centre."""
    return 0.5 if "Deformable" in type(host).__name__ else 1.0


def _is_map(host: nn.Module) -> bool:
    return type(host).__name__ == "RTDetrSinePositionEmbedding"


def _normalize(host: nn.Module, options: Options) -> bool:
    """By default as the host has it: DETR's sines are normalised, its tables and RT-DETR's sines are not."""
    return bool(getattr(host, "normalize", False)) if options.normalize is None else options.normalize


def _depth(host: Any) -> int:
    if _is_map(host):
        return int(host.embed_dim)
    per_axis = (
        host.row_embeddings.embedding_dim if hasattr(host, "row_embeddings") else getattr(host, "num_position_features", None)
    )
    return 2 * int(per_axis if per_axis is not None else host.embedding_dim)  # embedding_dim: transformers 4
