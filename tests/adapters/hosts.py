"""Small models of every host, with random weights: how to make one, what goes in, what to read, its own encoding."""

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import timm
import torch
import transformers
from torch import Tensor, nn

import lff
from lff.adapters import _find
from lff.adapters.host import Options

VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}


@dataclass(frozen=True)
class Case:
    """One host; `size` is what goes in at the trained size, `taller` the same with twice the height (or length)."""

    make: Callable[[], nn.Module]
    size: tuple[int, int]
    taller: tuple[int, int]
    own: Callable[[nn.Module], lff.Encoding]
    read: str | None = None
    coords: int = 2
    options: tuple[tuple[str, Any], ...] = ()

    def run(self, model: nn.Module, size: tuple[int, int], seed: int = 0) -> Tensor:
        torch.manual_seed(seed)
        words = self.coords == 1 or bool(self.options)
        out = model(torch.randint(5, 50, size) if words else torch.randn(2, 3, *size))
        return out if isinstance(out, Tensor) else out[self.read]


def own_table(model: nn.Module, **options: Any) -> lff.Encoding:
    """The host's table, as an encoding of ours."""
    name, adapter = _find(model)
    own = adapter.trained(model, name, Options(None, "keep", "rescale", options.get("extent")))
    extent = options.get("extent") or own.table.shape[:-1]
    table = lff.Embed(tuple(extent), own.table.shape[-1], join="cell")
    with torch.no_grad():
        table.tables[0].copy_(own.table.reshape(-1, table.depth))
    return table


class DetrSine(lff.Encoding):
    """DETR's sines to the bit: its positions are ours times 2 pi, and it divides where Eq. 1 here multiplies."""

    def encode(self, positions: Tensor) -> Tensor:
        d = torch.arange(self.depth // 2, dtype=torch.int64).to(torch.float32)
        d = 10000 ** (2 * torch.div(d, 2, rounding_mode="floor") / (self.depth // 2))
        angles = (positions * (2 * math.pi))[..., None] / d
        return torch.stack((angles[..., 0::2].sin(), angles[..., 1::2].cos()), dim=-1).flatten(-3)


class ColumnsFirst(lff.Encoding):
    """DETR's learned tables, which it joins as (column, row)."""

    def __init__(self, host: nn.Module) -> None:
        super().__init__(2, 2 * host.row_embeddings.embedding_dim)
        self.rows = nn.Parameter(host.row_embeddings.weight.clone())
        self.cols = nn.Parameter(host.column_embeddings.weight.clone())

    def encode(self, positions: Tensor) -> Tensor:
        row, col = positions.long().unbind(-1)
        return torch.cat([self.cols[col], self.rows[row]], dim=-1)


class RTDetrSine(lff.Encoding):
    """RT-DETR's sines to the bit: in float64 by now, the sines of an axis before its cosines."""

    def encode(self, positions: Tensor) -> Tensor:
        modeling = importlib.import_module("transformers.models.rt_detr.modeling_rt_detr")
        dtype = torch.float64 if hasattr(modeling, "build_2d_sinusoidal_position_embedding") else torch.float32
        omega = 1.0 / 10000.0 ** (torch.arange(self.depth // 4, dtype=dtype) / (self.depth // 4))
        row, col = (positions.to(dtype)[..., i, None] * omega for i in range(2))
        return torch.cat([row.sin(), row.cos(), col.sin(), col.cos()], dim=-1)


def resnet(features: list[str]) -> transformers.ResNetConfig:
    return transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], out_features=features)


def detr(kind: str, **options: Any) -> nn.Module:
    config = getattr(transformers, f"{kind}Config")(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=resnet(["stage2", "stage3", "stage4"] if kind == "DeformableDetr" else ["stage4"]),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        num_queries=5,
        **options,
    )
    model = getattr(transformers, f"{kind}ForObjectDetection")(config)
    for parameter in model.parameters():  # Deformable DETR's attention starts with zeros, which let no gradient through
        if not parameter.any():
            nn.init.normal_(parameter, std=0.02)
    return model


def rt_detr() -> nn.Module:
    backbone = transformers.RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], out_features=["stage2", "stage3", "stage4"]
    )
    model = transformers.RTDetrForObjectDetection(
        transformers.RTDetrConfig(
            backbone_config=backbone,
            encoder_in_channels=[8, 16, 16],
            encoder_hidden_dim=32,
            encoder_attention_heads=2,
            encoder_ffn_dim=32,
            d_model=32,
            decoder_in_channels=[32, 32, 32],
            decoder_layers=1,
            decoder_attention_heads=2,
            decoder_ffn_dim=32,
            num_queries=5,
        )
    )
    for parameter in model.parameters():  # with its own small weights nothing of a position would arrive at the end
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)
    return model


def reformer() -> nn.Module:
    return transformers.ReformerModel(
        transformers.ReformerConfig(
            vocab_size=64,
            hidden_size=32,
            attention_head_size=16,
            num_attention_heads=2,
            attn_layers=["lsh"],
            feed_forward_size=32,
            max_position_embeddings=128,
            axial_pos_shape=(8, 16),
            axial_pos_embds_dim=(16, 16),
            lsh_attn_chunk_length=8,
            num_buckets=4,
            num_hashes=1,
            hash_seed=0,
            pad_token_id=None,
            hidden_dropout_prob=0.0,
            is_decoder=False,
        )
    )


def bert() -> nn.Module:
    return transformers.BertModel(
        transformers.BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=24,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def vit_timm(name: str = "vit_tiny_patch16_224", size: int = 64, **options: Any) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, img_size=size, num_classes=5, depth=2, **options)


MLP = {"intermediate_size": 64}
GRID = {"size": (32, 32), "taller": (64, 32), "own": own_table}
TIMM = {"size": (64, 64), "taller": (128, 64), "own": own_table}
MAP = {"size": (96, 96), "taller": (192, 96)}
T = transformers
HOSTS: dict[str, Case] = {
    "ViT": Case(lambda: T.ViTForImageClassification(T.ViTConfig(**VISION, **MLP)), **GRID, read="logits"),
    "DeiT": Case(lambda: T.DeiTForImageClassificationWithTeacher(T.DeiTConfig(**VISION, **MLP)), **GRID, read="logits"),
    "DINOv2": Case(lambda: T.Dinov2ForImageClassification(T.Dinov2Config(**VISION, mlp_ratio=2)), **GRID, read="logits"),
    "DINOv2 with registers": Case(
        lambda: T.Dinov2WithRegistersForImageClassification(T.Dinov2WithRegistersConfig(**VISION, mlp_ratio=2)),
        **GRID,
        read="logits",
    ),
    "CLIP": Case(
        lambda: T.CLIPVisionModelWithProjection(T.CLIPVisionConfig(**VISION, **MLP, projection_dim=16)),
        **GRID,
        read="image_embeds",
    ),
    "SigLIP": Case(lambda: T.SiglipVisionModel(T.SiglipVisionConfig(**VISION, **MLP)), **GRID, read="pooler_output"),
    "DETR": Case(lambda: detr("Detr"), **MAP, own=lambda _: DetrSine(2, 32), read="logits"),
    "DETR, learned": Case(
        lambda: detr("Detr", position_embedding_type="learned"),
        **MAP,
        own=lambda model: ColumnsFirst(model.get_submodule(_find(model)[0])),
        read="logits",
    ),
    "Conditional DETR": Case(lambda: detr("ConditionalDetr"), **MAP, own=lambda _: DetrSine(2, 32), read="logits"),
    "Deformable DETR": Case(
        lambda: detr("DeformableDetr", num_feature_levels=3), **MAP, own=lambda _: DetrSine(2, 32), read="logits"
    ),
    "RT-DETR": Case(rt_detr, **MAP, own=lambda _: RTDetrSine(2, 32), read="logits"),
    "Reformer": Case(
        reformer,
        size=(2, 64),
        taller=(2, 128),
        own=lambda model: own_table(model, extent=(8, 16)),
        read="last_hidden_state",
        options=(("extent", (8, 16)),),
    ),
    "BERT": Case(bert, size=(2, 24), taller=(2, 48), own=own_table, read="last_hidden_state", coords=1),
    "timm ViT": Case(vit_timm(), **TIMM),
    "timm ViT, dynamic_img_size": Case(vit_timm(dynamic_img_size=True), **TIMM),
    "timm ViT, no_embed_class": Case(vit_timm(no_embed_class=True), **TIMM),
    "timm ViT, registers": Case(vit_timm("vit_small_patch14_reg4_dinov2", 56), size=(56, 56), taller=(112, 56), own=own_table),
    "timm ViT, no class token": Case(vit_timm(class_token=False, global_pool="avg"), **TIMM),
    "timm DeiT, distilled": Case(vit_timm("deit_tiny_distilled_patch16_224"), **TIMM),
}
