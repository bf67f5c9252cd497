"""transformers' ViT with a method's encoding. What it comes with, a table of all patches, is Embed-1D."""

from typing import Any

import torch
from torch import nn
from transformers import ViTConfig, ViTForImageClassification

import lff
from lff.adapters.grid import GridPositions
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.tasks.classification.config import ClassificationConfig

OWN = "Embed-1D"  # the host's


def build(config: ClassificationConfig, row: Row, channels: int, classes: int) -> nn.Module:
    """A ViT with fresh weights, made before its encoding: the same seed gives every method the same host."""
    model: nn.Module = ViTForImageClassification(
        ViTConfig(
            image_size=config.image,
            patch_size=config.patch,
            num_channels=channels,
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.feed_forward * config.width,
            hidden_dropout_prob=config.dropout,
            layer_norm_eps=1e-6,
            num_labels=classes,
        )
    )
    _initialise(model, -10.0 if config.objective == "sigmoid" else 0.0)
    if row.name == OWN and not row.options:
        return model
    cells = config.image // config.patch
    options = _options(config, row.name) | row.options
    normalize = options.pop("normalize", row.name == "MLP")  # the MLP alone wants coordinates of order one
    # Tables, and methods that number the cells of a grid, know the cells of that grid alone.
    unseen = "interpolate" if row.name.startswith("Embed") or row.name.endswith("-1D") else "rescale"
    try:
        encoding = lff.build(row.name, coords=2, depth=config.width, extent=(cells, cells), **options)
        return lff.swap(model, encoding, normalize=normalize, unseen=unseen)
    except TypeError as error:
        raise Problem(f"{row.label} cannot be made: {error}") from error


@torch.no_grad()
def _initialise(model: Any, bias: float) -> None:
    """As Scenic's ViT does it. transformers' N(0, 0.02^2) is too little for narrow models: positions drown the patches.

    Dense layers are Glorot-uniform, the patch projection keeps the variance of the pixels, the head starts at zero with every
    class as unlikely as `bias` says.
    """
    for module in model.vit.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
        if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
            nn.init.zeros_(module.bias)
    nn.init.zeros_(model.vit.embeddings.cls_token)
    nn.init.zeros_(model.classifier.weight)
    nn.init.constant_(model.classifier.bias, bias)


def position(model: Any) -> GridPositions | None:
    """What a swapped model asks for positions; None where it has the host's table."""
    found = getattr(model.vit.embeddings, "position", None)
    return found if isinstance(found, GridPositions) else None


@torch.no_grad()
def encoding(model: Any) -> lff.Encoding:
    """The model's encoding; the host's table as an `lff.Embed`."""
    swapped = position(model)
    if swapped is not None:
        return swapped.encoding
    table = model.vit.embeddings.position_embeddings[0, 1:]
    cells = model.config.image_size // model.config.patch_size
    own = lff.Embed((cells, cells), table.shape[-1], join="cell").to(table.device)
    own.tables[0].copy_(table)
    return own


def encoding_parameters(model: Any) -> int:
    """Learnable numbers that tell positions, the row for the class token among them."""
    swapped = position(model)
    parts = [model.vit.embeddings.position_embeddings] if swapped is None else list(swapped.parameters())
    return sum(p.numel() for p in parts)


def _options(config: ClassificationConfig, name: str) -> dict[str, Any]:
    """The config's settings for the encoding, as far as the method has them."""
    options: dict[str, Any] = {}
    if "Fourier" in name:
        options["gamma"] = config.gamma
    if name.endswith("MLP"):
        options["hidden"] = config.hidden
    if name.endswith("+MLP"):
        options["layer_norm"] = config.layer_norm
    if name.endswith("MLP") or name.startswith("Embed"):
        options["scale"] = config.scale
    return options


def layers(model: Any) -> list[nn.Module]:
    """The Transformer's layers."""
    return next(list(module) for module in model.vit.modules() if isinstance(module, nn.ModuleList))
