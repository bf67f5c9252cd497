"""transformers' patch models: ViT, DeiT, DINOv2 (with and without registers), and the vision towers of CLIP and SigLIP.

All of them have a method that resizes their table for the picture at hand. There the encoding goes in: the embeddings become an
instance of a subclass that overrides this method and sees to it that it is always asked.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from einops import rearrange
from torch import Tensor, nn
from transformers.models.clip.modeling_clip import CLIPVisionEmbeddings
from transformers.models.deit.modeling_deit import DeiTEmbeddings
from transformers.models.dinov2.modeling_dinov2 import Dinov2Embeddings
from transformers.models.dinov2_with_registers.modeling_dinov2_with_registers import Dinov2WithRegistersEmbeddings
from transformers.models.siglip.modeling_siglip import SiglipVisionEmbeddings
from transformers.models.vit.modeling_vit import ViTEmbeddings

from lff.adapters.grid import GridPositions
from lff.adapters.host import Changed, Options, Trained, check, settle
from lff.encodings.encoding import Encoding
from lff.positions import grid


class _Embeddings(Changed):
    """The embeddings of a swapped model ask `position` for whatever size the picture has."""

    position: GridPositions
    #: DINOv2 always resizes; the others have to be told to, and then accept any size.
    told: ClassVar[dict[str, bool]] = {"interpolate_pos_encoding": True}

    def interpolate_pos_encoding(self, embeddings: Tensor, height: int, width: int) -> Tensor:
        rows, cols = _pair(_patches(self).patch_size)
        encoded: Tensor = self.position(height // rows, width // cols)
        return encoded

    def forward(self, pixel_values: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        out: Tensor = super().forward(pixel_values, *args, **{**kwargs, **self.told})  # type: ignore[misc]
        return out


class SwappedViT(_Embeddings, ViTEmbeddings):
    """ViT's embeddings with an encoding."""


class SwappedDeiT(_Embeddings, DeiTEmbeddings):
    """DeiT's embeddings with an encoding; two tokens in front."""


class SwappedCLIP(_Embeddings, CLIPVisionEmbeddings):
    """CLIP's vision embeddings with an encoding."""


class SwappedSiglip(_Embeddings, SiglipVisionEmbeddings):
    """SigLIP's vision embeddings with an encoding; no token in front."""


class SwappedDinov2(_Embeddings, Dinov2Embeddings):
    """DINOv2's embeddings with an encoding."""

    told: ClassVar[dict[str, bool]] = {}
    position_embeddings = "the encoding is in position"  # the host asks whether there is one


class SwappedDinov2WithRegisters(_Embeddings, Dinov2WithRegistersEmbeddings):
    """DINOv2's embeddings with an encoding; the host puts registers behind the class token afterwards, without a position."""

    told: ClassVar[dict[str, bool]] = {}
    position_embeddings = "the encoding is in position"


_SWAPPED: dict[type[nn.Module], type[_Embeddings]] = {
    ViTEmbeddings: SwappedViT,
    DeiTEmbeddings: SwappedDeiT,
    CLIPVisionEmbeddings: SwappedCLIP,
    SiglipVisionEmbeddings: SwappedSiglip,
    Dinov2Embeddings: SwappedDinov2,
    Dinov2WithRegistersEmbeddings: SwappedDinov2WithRegisters,
}


def trained(model: nn.Module, name: str, options: Options) -> Trained:
    """The rows of the host's table for the patches, at the positions that a swap with these options will ask for."""
    embeddings = model.get_submodule(name)
    size = _size(embeddings)
    _, table = _split(embeddings)
    return Trained(
        grid(size, normalize=bool(options.normalize), device=table.device), rearrange(table, "(h w) d -> h w d", h=size[0])
    )


def put(model: nn.Module, name: str, encoding: Encoding, options: Options) -> None:
    """Puts the encoding into the embeddings `name` of `model`."""
    embeddings = model.get_submodule(name)
    prefix, table = _split(embeddings)
    check(encoding, depth=table.shape[-1], coords=2, host=type(embeddings).__name__)
    position = GridPositions(
        settle(encoding, model, table),
        _size(embeddings),
        normalize=bool(options.normalize),
        unseen=options.unseen,
        prefix=prefix,
        class_token=options.class_token,
    )
    host = next(cls for cls in type(embeddings).__mro__ if cls in _SWAPPED)
    _SWAPPED[host].change(embeddings, [_table(embeddings)])
    embeddings.position = position


def _table(embeddings: nn.Module) -> str:
    return "position_embeddings" if "position_embeddings" in embeddings._parameters else "position_embedding"


def _split(embeddings: nn.Module) -> tuple[Tensor, Tensor]:
    """The table's rows for the tokens in front, and those for the patches."""
    table = getattr(embeddings, _table(embeddings))
    rows = table.weight if isinstance(table, nn.Embedding) else table[0]
    height, width = _size(embeddings)
    return rows[: len(rows) - height * width].detach(), rows[len(rows) - height * width :].detach()


def _size(embeddings: nn.Module) -> tuple[int, int]:
    """The trained grid, in patches."""
    patches = _patches(embeddings)
    (height, width), (rows, cols) = _pair(patches.image_size), _pair(patches.patch_size)
    return height // rows, width // cols


def _patches(embeddings: Any) -> Any:
    return getattr(embeddings, "patch_embeddings", embeddings)


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])
