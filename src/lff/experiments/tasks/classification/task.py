"""Image classification with ViT: precision at 1 and 5, at the trained size and others, and from a few pictures of each class."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from lff.encodings.encoding import Encoding
from lff.encodings.zero import Zero
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.task import Measure, Request, Task, World
from lff.experiments.tasks.classification import config as presets
from lff.experiments.tasks.classification import model as models
from lff.experiments.tasks.classification.config import ClassificationConfig
from lff.experiments.tasks.classification.few_shot import draw, few_shot
from lff.experiments.tasks.classification.pictures import Parts, Source

Batch = tuple[Tensor, Tensor]
EVALUATED = 500  # pictures at a time
SHOT_SEEDS = 3


class Classification(Task[ClassificationConfig]):
    """Section 4.3: which class a picture belongs to."""

    default: ClassVar[str] = models.OWN
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("top1", "Top-1, %", 100, 1),
        Measure("top5", "Top-5, %", 100, 1),
        Measure("shots", "Few-shot, %", 100, 1),
    )
    presets: ClassVar[dict[str, Any]] = {
        "tiny": presets.tiny,
        "demo": presets.demo,
        "mini": presets.mini,
        "paper": presets.paper,
    }

    def __init__(self, config: ClassificationConfig, data: Path | None) -> None:
        super().__init__(config, data)
        if config.image % config.patch:
            raise Problem(f"--image must be a multiple of --patch, got {config.image} and {config.patch}")
        self.parts = Parts(config, data)
        self.classes = self.parts.train_source.classes

    @property
    def samples(self) -> int:
        return len(self.parts.train)

    def model(self, row: Row) -> nn.Module:
        return models.build(self.config, row, self.parts.train_source.channels, len(self.classes))

    def batches(self, requests: Any, device: torch.device) -> Iterator[Batch]:
        of_source = (Request(self.parts.train[request.indices], request.keys) for request in requests)
        return self.parts.train_source.batches(of_source, device, train=True)

    def batch(self, request: Request, device: torch.device) -> Batch:
        return next(self.batches([request], device))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        pixels, labels = batch
        logits = model(_normalised(pixels)).logits
        if self.config.objective == "sigmoid":
            wanted = functional.one_hot(labels, len(self.classes)).to(logits.dtype)
            return functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none").sum(-1).mean()
        return functional.cross_entropy(logits, labels)

    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        return self._at(model, world, self.config.image)

    def final(self, model: nn.Module, world: World) -> dict[str, Any]:
        found: dict[str, Any] = dict(self.evaluate(model, world))
        if self.config.shots:
            found["shots"] = self._few_shot(model, world)
        found["sizes"] = [{"scale": 1.0, "size": [self.config.image] * 2, "asked": "trained", **self._top(found)}]
        for scale in self.config.scales:
            size = round(scale * self.config.image / self.config.patch) * self.config.patch
            for asked in self._ways(model):
                tops = self._top(self._asked(model, world, size, asked))
                found["sizes"].append({"scale": scale, "size": [size, size], "asked": asked, **tops})
        return found

    def layers(self, model: nn.Module) -> list[nn.Module]:
        return models.layers(model)

    def encoding(self, model: nn.Module) -> Encoding:
        return models.encoding(model)

    def encoding_parameters(self, model: nn.Module) -> int:
        return models.encoding_parameters(model)

    def about(self) -> dict[str, Any]:
        cells = self.config.image // self.config.patch
        return {**super().about(), "classes": len(self.classes), "grid": [cells, cells]}

    def _ways(self, model: nn.Module) -> tuple[str, ...]:
        """How positions at an unseen size can be asked of this encoding."""
        position = models.position(model)
        if position is None or position.unseen == "interpolate":
            return ("interpolate",)
        return ("rescale",) if position.normalize or isinstance(position.encoding, Zero) else ("rescale", "extend", "interpolate")

    def _asked(self, model: nn.Module, world: World, size: int, asked: str) -> dict[str, float]:
        position = models.position(model)
        if position is None:
            return self._at(model, world, size)
        before, position.unseen = position.unseen, asked
        try:
            return self._at(model, world, size)
        finally:
            position.unseen = before

    @staticmethod
    def _top(found: dict[str, Any]) -> dict[str, float]:
        return {key: found[key] for key in ("top1", "top5")}

    def _at(self, model: nn.Module, world: World, size: int) -> dict[str, float]:
        """The measures with pictures resized to `size`."""
        totals = torch.zeros(4, dtype=torch.float64, device=world.device)
        for source, numbers in self.parts.judged(self.config):
            for pixels, labels in self._shown(source, numbers, world):
                logits = self._forward(model, pixels, size).logits.float()
                best = logits.topk(min(5, logits.shape[-1])).indices == labels[:, None]
                loss = functional.cross_entropy(logits, labels, reduction="sum")
                totals += torch.stack([best[:, 0].sum(), best.sum(), loss, torch.tensor(len(labels), device=loss.device)])
        top1, top5, loss, count = world.sum(totals).tolist()
        return {"top1": top1 / count, "top5": top5 / count, "loss": loss / count}

    def _few_shot(self, model: Any, world: World) -> float:
        """Mean over draws of the few pictures; the first process does it."""

        def features(source: Source, numbers: Tensor) -> tuple[Tensor, Tensor]:
            one = World(0, 1, world.device, lambda tensor: tensor)
            size = self.config.image
            shown = [
                (model.vit(_resized(_normalised(pixels), size)).last_hidden_state[:, 0].float(), labels)
                for pixels, labels in self._shown(source, numbers, one)
            ]
            return torch.cat([f for f, _ in shown]), torch.cat([labels for _, labels in shown])

        found = torch.zeros((), dtype=torch.float64, device=world.device)
        if world.rank == 0:
            train = self.parts.train
            labels = self.parts.train_source.labels[train]
            tests = [features(*part) for part in self.parts.judged(self.config)]
            test, test_labels = torch.cat([f for f, _ in tests]), torch.cat([labels for _, labels in tests])
            for seed in range(SHOT_SEEDS):
                few = features(self.parts.train_source, train[draw(labels, self.config.shots, seed)])
                found += few_shot(*few, test, test_labels) / SHOT_SEEDS
        return float(world.sum(found))

    def _shown(self, source: Source, numbers: Tensor, world: World) -> Iterator[Batch]:
        """Pictures as they are, those of this process."""
        share = world.share(len(numbers))
        mine = numbers[share.start : share.stop]
        return source.batches((Request(part, part) for part in torch.split(mine, EVALUATED)), world.device, train=False)

    def _forward(self, model: Any, pixels: Tensor, size: int) -> Any:
        own_size = size == self.config.image
        return model(_resized(_normalised(pixels), size), interpolate_pos_encoding=not own_size)


def _normalised(pixels: Tensor) -> Tensor:
    """In [-1, 1]."""
    return pixels.float() / 127.5 - 1


def _resized(pictures: Tensor, size: int) -> Tensor:
    if pictures.shape[-1] == size:
        return pictures
    return functional.interpolate(pictures, (size, size), mode="bicubic", align_corners=False, antialias=True)
