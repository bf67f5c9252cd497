"""Small Reformers that the tests of generation share."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lff.experiments.methods import parse
from lff.experiments.tasks.generation.config import GenerationConfig, tiny
from lff.experiments.tasks.generation.model import PixelModel, build

#: 192 tokens in 12 chunks.
SMALL: dict[str, Any] = {"size": 8, "width": 32, "chunk": 16, "buckets": 24, "heads": 2, "head": 8}


def small(**settings: Any) -> GenerationConfig:
    return replace(tiny(), **{**SMALL, **settings})


def reformer(method: str = "Embed-2D", *, channels: int = 3, seed: int = 0, **settings: Any) -> PixelModel:
    """One whose hashes and attention differ from token to token: larger weights than it would start with."""
    torch.manual_seed(seed)
    model = build(small(**settings), parse(method), channels)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.3)
    return model
