"""Image generation with Reformer: bits per dimension of pictures that were not trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lff.encodings.encoding import Encoding
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.task import Measure, Request, Task, World
from lff.experiments.tasks.generation import config as presets
from lff.experiments.tasks.generation.bits import bits, nats
from lff.experiments.tasks.generation.config import GenerationConfig
from lff.experiments.tasks.generation.model import PixelModel, build
from lff.experiments.tasks.generation.pictures import read
from lff.experiments.tasks.generation.positions import shown

EVALUATED = 2**17  # tokens at a time


class Generation(Task[GenerationConfig]):
    """Section 4.1: the value of every pixel from those before it."""

    default: ClassVar[str] = "Embed-2D"
    measures: ClassVar[tuple[Measure, ...]] = (Measure("bpd", "Bits/dim", 1, 3, larger=False),)
    presets: ClassVar[dict[str, Any]] = {
        "tiny": presets.tiny,
        "demo": presets.demo,
        "mini": presets.mini,
        "paper": presets.paper,
    }
    panels: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Baselines": ("Embed-2D", "Embed-1D", "Sine-1D", "Sine-2D", "Learnable-Fourier+MLP"),
        "Components": ("MLP", "Learnable-Fourier", "Learnable-Fourier+MLP"),
        "Sines in two dimensions": ("MD-Sine", "MD-Sine+MLP", "Learnable-Fourier+MLP"),
        "The KL loss": ("Learnable-Fourier+MLP", "Learnable-Fourier+MLP(kl=1.0)"),
    }

    def __init__(self, config: GenerationConfig, data: Path | None) -> None:
        super().__init__(config, data)
        if config.width % 16:
            raise Problem(f"--width must be a multiple of 16, got {config.width}")
        if config.buckets % 2:
            raise Problem(f"--buckets must be even, got {config.buckets}")
        if config.host == "transformers" and config.compile != "no":
            raise Problem("--host transformers cannot be compiled: its backward pass keeps graphs; give --compile no")
        self.train, self.test = (read(data, split, config.size) for split in ("train", "val"))
        self.channels = self.train.channels
        self.length = config.size**2 * self.channels
        if self.length % config.chunk or self.length == config.chunk:
            raise Problem(f"--chunk must divide the {self.length} tokens of a picture into two or more, got {config.chunk}")

    @property
    def samples(self) -> int:
        return len(self.train)

    def model(self, row: Row) -> PixelModel:
        return build(self.config, row, self.channels)

    def batch(self, request: Request, device: torch.device) -> Tensor:
        return self.train.batch(request.indices, device)

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        return nats(model(batch), batch).mean()

    def alike(self, model: Any, seed: int) -> None:
        model.hashes = torch.Generator().manual_seed(seed)

    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        count = min(self.config.judged or len(self.test), len(self.test))
        share = world.share(count)
        at_once = max(1, EVALUATED // self.length)
        total = torch.zeros((), dtype=torch.float64, device=world.device)
        for numbers in torch.split(torch.arange(share.start, share.stop), at_once):
            ids = self.test.batch(numbers, world.device)
            total += nats(model(ids), ids).double().sum()
        return {"bpd": bits(float(world.sum(total)) / (count * self.length))}

    def layers(self, model: Any) -> list[nn.Module]:
        return list(model.host.reformer.encoder.layers)

    def encoding(self, model: Any) -> Encoding:
        return shown(model.positions)

    def encoding_parameters(self, model: Any) -> int:
        return sum(p.numel() for p in model.positions.parameters())

    def keeps(self, model: nn.Module) -> dict[str, Tensor]:
        return model.state_dict() if self.config.keep else {}

    def about(self) -> dict[str, Any]:
        grid = [self.config.size, self.config.size]
        return {**super().about(), "channels": self.channels, "grid": grid, "embedded": self.data is None}
