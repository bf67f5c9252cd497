"""A task that trains in a moment: the height of a wave at a position."""

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import lff
from lff.experiments.config import Config
from lff.experiments.methods import Row
from lff.experiments.task import Measure, Request, Task, World


def demo() -> Config:
    return Config(
        methods=("Embed-2D", "Learnable-Fourier+MLP(gamma=4.0)"),
        seeds=2,
        steps=30,
        batch=16,
        rate=1e-2,
        evaluate_every=10,
        checkpoint_every=10,
        log_every=1,
        tensorboard=False,
    )


class Toy(Task[Config]):
    """Dropout makes the random state matter; `spoil` makes the loss of one step infinite."""

    default: ClassVar[str] = "Embed-2D"
    measures: ClassVar[tuple[Measure, ...]] = (Measure("error", "Error", larger=False),)
    presets: ClassVar[dict[str, Any]] = {"demo": demo}
    spoil: int | None = None

    def __init__(self, config: Config, data: Path | None) -> None:
        super().__init__(config, data)
        self.positions = lff.grid((8, 8)).reshape(-1, 2)
        self.heights = torch.sin(self.positions @ torch.tensor([0.5, 0.7]))
        self.asked: list[Request] = []

    @property
    def samples(self) -> int:
        return 64

    def model(self, row: Row) -> nn.Module:
        head = nn.Linear(16, 1)
        encoding = lff.build(row.name, coords=2, depth=16, extent=(8, 8), **row.options)
        return nn.Sequential(encoding, nn.Dropout(0.1), head)

    def batch(self, request: Request, device: torch.device) -> tuple[Tensor, Tensor]:
        self.asked.append(request)
        return self.positions[request.indices].to(device), self.heights[request.indices].to(device)

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        positions, heights = batch
        loss = (model(positions)[:, 0] - heights).square().mean()
        return loss * float("inf") if len(self.asked) - 1 == self.spoil else loss

    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        share = world.share(64)
        wrong = (
            model(self.positions[share.start : share.stop].to(world.device))[:, 0].cpu() - self.heights[share.start : share.stop]
        )
        return {"error": float(world.sum(wrong.square().sum().to(world.device))) / 64}
