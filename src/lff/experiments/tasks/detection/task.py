"""Object detection with DETR: COCO's average precision, at sizes that were trained and at others."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lff.encodings.encoding import Encoding
from lff.experiments.data.annotated import Annotated
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.task import Measure, Request, Task, World
from lff.experiments.tasks.detection import backbones, evaluation, features
from lff.experiments.tasks.detection import config as presets
from lff.experiments.tasks.detection import model as models
from lff.experiments.tasks.detection.batch import Batch, normalised
from lff.experiments.tasks.detection.boxes import corners
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.kept import Drawn, Kept
from lff.experiments.tasks.detection.loss import Loss
from lff.experiments.tasks.detection.paper import published
from lff.experiments.tasks.detection.pictures import Streamed, splits

EVALUATED = 64  # pictures at a time


class Detection(Task[DetectionConfig]):
    """Section 4.2: what a picture shows, and where."""

    default: ClassVar[str] = models.OWN
    measures: ClassVar[tuple[Measure, ...]] = (
        Measure("ap50", "AP50, %", 100, 1),
        Measure("ap", "AP, %", 100, 1),
        Measure("ap75", "AP75, %", 100, 1),
        Measure("ap_small", "AP small, %", 100, 1),
        Measure("ap_medium", "AP medium, %", 100, 1),
        Measure("ap_large", "AP large, %", 100, 1),
    )
    presets: ClassVar[dict[str, Any]] = {
        "tiny": presets.tiny,
        "demo": presets.demo,
        "mini": presets.mini,
        "mini-unseen": presets.mini_unseen,
        "mini-start": presets.mini_start,
        "paper": presets.paper,
        "paper-unseen": presets.paper_unseen,
        "paper-start": presets.paper_start,
    }

    def __init__(self, config: DetectionConfig, data: Path | None) -> None:
        super().__init__(config, data)
        file = backbones.weights_of(config.backbone, config.weights)
        if config.frozen and file is None:
            raise Problem(f"--frozen wants a backbone that has learned: give --weights for {config.backbone}")
        self.weights = backbones.digest(file)
        self.train, self.test = splits(config, data)
        self._loss = Loss(compiled=config.frozen and config.compile != "no")  # streamed batches have shapes of their own

    @classmethod
    def published(cls, config: DetectionConfig) -> dict[str, dict[str, float]]:
        return published(config)

    @property
    def samples(self) -> int:
        return len(self.train)

    @property
    def size(self) -> int:
        """The short side that decides: DETR evaluates at the largest."""
        return max(self.config.unseen_sizes or self.config.sizes)

    def model(self, row: Row) -> nn.Module:
        return models.build(self.config, row, len(self.train.categories))

    @property
    def recordable(self) -> bool:
        return self.config.frozen

    def batches(self, requests: Iterable[Request], device: torch.device) -> Iterator[Batch | Drawn]:
        return self._training(device).training(requests, device)

    def batch(self, request: Request, device: torch.device) -> Batch | Drawn:
        return next(self.batches([request], device))

    def loss(self, model: nn.Module, batch: Batch | Drawn) -> Tensor:
        if isinstance(batch, Drawn):
            batch = self.kept_training.batch(batch)
        logits, boxes = model(self._inputs(batch), batch.mask, batch.room)
        return self._loss(logits, boxes, batch.targets) / self.config.groups

    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        count = min(self.config.judged or len(self.test), len(self.test))
        numbers = np.arange(count) * len(self.test) // count
        found = self._at(model, world, numbers, self.size)
        return {key: found[key] for key in evaluation.KEYS}

    def final(self, model: nn.Module, world: World) -> dict[str, Any]:
        numbers, trained = np.arange(len(self.test)), max(self.config.sizes)
        found = self._at(model, world, numbers, self.size)
        sizes = [(trained, "trained"), *((size, "unseen") for size in self.config.unseen_sizes)]
        found["sizes"] = [
            {"scale": round(size / trained, 3), "size": size, "asked": asked, **self._ap(model, world, numbers, size, found)}
            for size, asked in sizes
        ]
        return found

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        inside = {id(p) for name, p in model.named_parameters() if ".backbone." in name}
        groups = []
        for group in super().groups(model):
            for backbone in (False, True):
                part = [p for p in group["params"] if (id(p) in inside) == backbone]
                if part:
                    groups.append({**group, "params": part, "factor": self.config.backbone_rate if backbone else 1.0})
        return groups

    def layers(self, model: nn.Module) -> list[nn.Module]:
        assert isinstance(model, models.Detector)
        detr = model.host.model
        return [*detr.encoder.layers, *detr.decoder.layers]

    def encoding(self, model: nn.Module) -> Encoding | None:
        assert isinstance(model, models.Detector)
        return models.encoding(model)

    def keeps(self, model: nn.Module) -> dict[str, Tensor]:
        return dict(model.state_dict())

    def about(self) -> dict[str, Any]:
        return {
            **super().about(),
            "judged_pictures": len(self.test),
            "categories_found": [list(category) for category in self.train.categories],
            "grid": [self.config.cells, self.config.cells],
            "weights": self.weights,
        }

    def _inputs(self, batch: Batch) -> Tensor:
        if self.config.frozen:
            return batch.inputs.float()
        kind = backbones.KINDS[self.config.backbone]
        return normalised(batch.inputs, batch.mask, kind.mean, kind.std)

    def _training(self, device: torch.device) -> Kept | Streamed:
        if not self.config.frozen:
            return Streamed(self.train, self.config)
        if "kept_training" not in self.__dict__:
            self.kept_training = self._kept(self.train, self.config.sizes, 1 + self.config.flip, device)
        return self.kept_training

    def _judged(self, device: torch.device) -> Kept | Streamed:
        if not self.config.frozen:
            return Streamed(self.test, self.config)
        if "kept_test" not in self.__dict__:
            sizes = tuple(dict.fromkeys((max(self.config.sizes), *self.config.unseen_sizes)))
            self.kept_test = self._kept(self.test, sizes, 1, device)
        return self.kept_test

    def _kept(self, pictures: Annotated, sizes: tuple[int, ...], flips: int, device: torch.device) -> Kept:
        return Kept(pictures, self._features(pictures, sizes, flips, device), crop=self.config.crop, device=device)

    def _features(self, pictures: Annotated, sizes: tuple[int, ...], flips: int, device: torch.device) -> features.Features:
        asked = features.wanted(pictures, sizes, flips, self.config)
        return features.kept(asked, self.config, self.weights, lambda: models.extractor(self.config), device)

    def _ap(self, model: nn.Module, world: World, numbers: np.ndarray, size: int, known: dict[str, Any]) -> dict[str, float]:
        found = known if size == self.size else self._at(model, world, numbers, size)
        return {key: found[key] for key in ("ap50", "ap")}

    def _at(self, model: nn.Module, world: World, numbers: np.ndarray, size: int) -> dict[str, Any]:
        """COCO's measures of some test pictures at one size; the first process judges what all have found."""
        share = world.share(len(numbers))
        found = torch.zeros(len(numbers), self.config.queries, 6, device=world.device)
        parts = torch.split(torch.from_numpy(numbers[share.start : share.stop]), EVALUATED)
        place = share.start
        for part, batch in zip(parts, self._judged(world.device).judged(parts, size, world.device), strict=True):
            logits, boxes = model(self._inputs(batch), batch.mask)
            sides = torch.from_numpy(self.test.sizes[part][:, ::-1].copy())
            found[place : place + len(part)] = detections(logits[-1].float(), boxes[-1].float(), sides.to(world.device))
            place += len(part)
        there = world.sum(found).cpu().numpy()
        judged = evaluation.evaluate(self.test, numbers, there, self.config.enlarge) if world.rank == 0 else {}
        scores = torch.tensor([judged.get(key, 0.0) for key in evaluation.KEYS], dtype=torch.float64, device=world.device)
        return {**judged, **dict(zip(evaluation.KEYS, world.sum(scores).tolist(), strict=True))}


def detections(logits: Tensor, boxes: Tensor, sides: Tensor) -> Tensor:
    """Of every query its best class, as DETR does it: x1, y1, x2, y2 in pixels, the probability, the label.

    Args:
        logits: [batch, queries, classes], the last class being "no object".
        boxes: [batch, queries, 4], centres and sides over those of the picture.
        sides: [batch, 2], width and height of the pictures in pixels.
    """
    score, label = logits.softmax(-1)[..., :-1].max(-1)
    pixels = corners(boxes) * sides.to(boxes.dtype).repeat(1, 2)[:, None]
    return torch.cat([pixels, torch.stack([score, label.to(score.dtype)], dim=-1)], dim=-1)
