"""Where batches of pictures come from: files, decoded and augmented by other processes, or scenes."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from lff.experiments import data
from lff.experiments.data.annotated import Annotated
from lff.experiments.data.coco import coco, frequent
from lff.experiments.task import Request
from lff.experiments.tasks.detection.augment import Recipe, augmented, resized
from lff.experiments.tasks.detection.batch import Batch, Sample, collate, moved
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.scenes import scenes


def splits(config: DetectionConfig, folder: Path | None) -> tuple[Annotated, Annotated]:
    """Pictures to train on and to be judged by."""
    if folder is None:
        return scenes("train", config.scenes[0]), scenes("test", config.scenes[1])
    categories = frequent(folder, config.categories, config.least)
    train, test = (coco(folder, split, categories, empty=config.empty) for split in ("train", "val"))
    return train, test


class Augmented(Dataset[Sample]):
    """Pictures to train on: a request is a picture's number and the key that decides its augmentation."""

    def __init__(self, pictures: Annotated, recipe: Recipe) -> None:
        self.pictures, self.recipe = pictures, recipe

    def __getitems__(self, requests: Sequence[tuple[int, int]]) -> Batch:
        each = (augmented(self.pictures.pixels(index), self.pictures.objects(index), self.recipe, key) for index, key in requests)
        return collate(list(each))


class Resized(Dataset[Sample]):
    """Pictures as they are, at one size: a request is a number and twice the size, and one more for the mirror image."""

    def __init__(self, pictures: Annotated, longest: int) -> None:
        self.pictures, self.longest = pictures, longest

    def __getitems__(self, requests: Sequence[tuple[int, int]]) -> Batch:
        none = torch.empty(0, 4), torch.empty(0, dtype=torch.int64)
        each = (
            Sample(resized(self.pictures.pixels(index), how // 2, self.longest, flip=bool(how % 2)), *none)
            for index, how in requests
        )
        return collate(list(each))


class Streamed:
    """Pictures read in every step anew.

    Args:
        pictures: which.
        config: sizes, and how many processes read.
    """

    def __init__(self, pictures: Annotated, config: DetectionConfig) -> None:
        self._pictures, self._config = pictures, config

    def training(self, requests: Iterable[Request], device: torch.device) -> Iterator[Batch]:
        """Augmented pictures of each request, on the device."""
        config = self._config
        recipe = Recipe(config.sizes, config.longest, config.largest, config.crop, config.flip)
        yield from _read(Augmented(self._pictures, recipe), requests, config.loaders, device)

    def judged(self, parts: Iterable[Tensor], size: int, device: torch.device) -> Iterator[Batch]:
        """Pictures as they are, of each part."""
        requests = (Request(part, torch.full_like(part, 2 * size)) for part in parts)
        yield from _read(Resized(self._pictures, self._config.longest), requests, self._config.loaders, device)


def _read(dataset: Dataset[Sample], requests: Iterable[Request], loaders: int, device: torch.device) -> Iterator[Batch]:
    batches = data.batches(dataset, requests, loaders, pin_memory=device.type == "cuda")
    try:
        for batch in batches:
            yield moved(batch, device)
    finally:
        batches.close()  # type: ignore[attr-defined]
