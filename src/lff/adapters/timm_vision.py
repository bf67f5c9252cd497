"""timm's VisionTransformer family: the encoding goes into `_pos_embed`, which all of its paths call."""

from typing import Any

import torch
from einops import rearrange
from timm.layers import Format
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from lff.adapters.grid import GridPositions
from lff.adapters.host import Changed, Options, Trained, check, settle
from lff.encodings.encoding import Encoding
from lff.positions import grid


class _Model(Changed):
    """A swapped model takes pictures of any size that its patches divide."""

    position: GridPositions

    def _pos_embed(self: Any, x: Tensor) -> Tensor:
        height, width = x.shape[1:3]
        x = rearrange(x, "b h w d -> b (h w) d")
        tokens = (self.cls_token, getattr(self, "dist_token", None), self.reg_token)
        front = [token.expand(x.shape[0], -1, -1) for token in tokens if token is not None]
        encoded = self.position(height, width)
        if self.no_embed_class or not front:  # tokens in front have no position, so they come after it is added
            x = x + encoded
            x = torch.cat([*front, x], dim=1) if front else x
        else:
            x = torch.cat([*front, x], dim=1) + encoded
        return self.pos_drop(x)  # type: ignore[no-any-return]

    def undo(self, parent: nn.Module, name: str) -> None:
        patch_embed: Any = self.patch_embed  # type: ignore[attr-defined]
        patch_embed.flatten, patch_embed.output_fmt, patch_embed.strict_img_size = self.__dict__.pop("_before")
        super().undo(parent, name)


class SwappedVisionTransformer(_Model, VisionTransformer):
    """A VisionTransformer with an encoding."""


class SwappedVisionTransformerDistilled(_Model, VisionTransformerDistilled):
    """A distilled DeiT with an encoding."""


def trained(model: nn.Module, name: str, options: Options) -> Trained:
    """The rows of the host's table for the patches, at the positions that a swap with these options will ask for."""
    host: Any = model.get_submodule(name)
    size = tuple(host.patch_embed.grid_size)
    _, table = _split(host)
    return Trained(
        grid(size, normalize=bool(options.normalize), device=table.device), rearrange(table, "(h w) d -> h w d", h=size[0])
    )


def put(model: nn.Module, name: str, encoding: Encoding, options: Options) -> None:
    """Puts the encoding into the VisionTransformer `name` of `model` ("" for the model itself)."""
    host: Any = model.get_submodule(name)
    if host._pos_embed.__func__ not in (VisionTransformer._pos_embed, VisionTransformerDistilled._pos_embed):
        raise ValueError(
            f"model must add its positions as timm's VisionTransformer does, got a {type(host).__name__} with its own way"
        )
    if host.pos_embed is None:
        raise ValueError(f"model must have a pos_embed to be replaced, got a {type(host).__name__} without one")
    if host.patch_embed.grid_size is None:
        raise ValueError("model must know the grid it was made for, got a patch_embed without a grid_size")
    prefix, table = _split(host)
    check(encoding, depth=table.shape[-1], coords=2, host=type(host).__name__)
    position = GridPositions(
        settle(encoding, model, table),
        tuple(host.patch_embed.grid_size),
        normalize=bool(options.normalize),
        unseen=options.unseen,
        prefix=prefix,
        class_token=options.class_token,
    )
    patch_embed = host.patch_embed
    distilled = isinstance(host, VisionTransformerDistilled)
    host._before = (patch_embed.flatten, patch_embed.output_fmt, patch_embed.strict_img_size)
    (SwappedVisionTransformerDistilled if distilled else SwappedVisionTransformer).change(host, ["pos_embed"])
    host.position = position
    # Patches come as a grid whatever the size, as they do in a model made with dynamic_img_size.
    patch_embed.flatten, patch_embed.output_fmt, patch_embed.strict_img_size = False, Format.NHWC, False


def _split(host: Any) -> tuple[Tensor, Tensor]:
    """The table's rows for the tokens in front, and those for the patches."""
    rows: Tensor = host.pos_embed[0].detach()
    tokens = len(rows) - host.patch_embed.num_patches
    return rows[:tokens], rows[tokens:]
