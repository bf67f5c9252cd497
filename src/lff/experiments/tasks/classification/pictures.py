"""The pictures of a run, cut into parts: to train on, to choose settings on, to test on."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lff.experiments import data
from lff.experiments.devices import moved
from lff.experiments.problems import Problem
from lff.experiments.task import Request
from lff.experiments.tasks.classification.config import ClassificationConfig


@runtime_checkable
class Source(Protocol):
    """Pictures by their number."""

    labels: Tensor
    classes: tuple[str, ...]
    channels: int

    def batches(self, requests: Iterable[Request], device: torch.device, *, train: bool) -> Iterator[tuple[Tensor, Tensor]]:
        """uint8 pixels and labels on the device, for each request; augmented where `train`."""
        ...


class Kept:
    """Decoded once, kept on the device."""

    def __init__(self, images: data.Images, config: ClassificationConfig) -> None:
        self.labels, self.classes, self.channels = images.labels, images.classes, images.pixels.shape[1]
        self._pixels, self._there, self._padding = images.pixels, images.labels, config.padding
        self._augment = data.augment if config.compile == "no" else torch.compile(data.augment)

    def batches(self, requests: Iterable[Request], device: torch.device, *, train: bool) -> Iterator[tuple[Tensor, Tensor]]:
        for request in requests:
            if self._pixels.device != device:
                self._pixels, self._there = self._pixels.to(device), self.labels.to(device)
            indices, keys = (moved(tensor, device) for tensor in request)
            pixels = self._pixels[indices]
            yield (self._augment(pixels, keys, self._padding) if train else pixels), self._there[indices]


class Streamed:
    """Read from disk by other processes, in every step anew."""

    def __init__(self, listing: data.Listing, config: ClassificationConfig) -> None:
        self.labels, self.classes, self.channels = listing.labels, listing.classes, 3
        self._listing, self._config = listing, config

    def batches(self, requests: Iterable[Request], device: torch.device, *, train: bool) -> Iterator[tuple[Tensor, Tensor]]:
        crop = train and self._config.crop
        # Without the crop recipe a picture is what it would be decoded once.
        resize = None if self._config.crop else self._config.image
        pictures = data.StreamedImages(self._listing, self._config.image, crop, resize=resize)
        keys: list[Tensor] = []

        def asked() -> Iterator[tuple[Tensor, Tensor]]:
            for request in requests:
                keys.append(request.keys)
                yield request

        batches = data.batches(pictures, asked(), self._config.loaders, pin_memory=device.type == "cuda")
        try:
            for pixels, labels in batches:
                key, there = moved(keys.pop(0), device), pixels.to(device, non_blocking=True)
                shifted = data.augment(there, key, self._config.padding) if train and not crop else there
                yield shifted, labels.to(device, non_blocking=True)
        finally:
            batches.close()  # type: ignore[attr-defined]


class Parts:
    """Training and test pictures, with which numbers of them are for what.

    Args:
        config: says how many of each class are set aside.
        folder: of the data set; None for the embedded one.
    """

    def __init__(self, config: ClassificationConfig, folder: Path | None) -> None:
        self.train_source: Source
        self.test_source: Source
        if config.crop and not config.stream:
            raise Problem("--crop cuts its parts out of the files: give --stream too")
        if folder is None:
            if config.stream:
                raise Problem("--stream reads an image folder: give --data")
            self.train_source, self.test_source = (
                Kept(data.embedded(split, config.image), config) for split in ("train", "test")
            )
        elif config.stream:
            self.train_source, self.test_source = (Streamed(data.listing(folder, split), config) for split in ("train", "val"))
        else:
            cache = Path.home() / ".cache" / "lff"
            self.train_source, self.test_source = (
                Kept(data.folder(folder, split, config.image, cache), config) for split in ("train", "val")
            )
        apart = config.develop + config.held
        within = _within_class(self.train_source.labels)
        fewest = int(torch.bincount(self.train_source.labels, minlength=len(self.train_source.classes)).min())
        if apart >= fewest:
            raise Problem(
                f"--develop and --held must leave pictures of each class to train on: {apart} of {fewest} are set aside"
            )
        #: Numbers of training pictures: to train on, to choose settings on, to test on beside the test set.
        self.train = torch.nonzero(within >= apart)[:, 0]
        self.develop = torch.nonzero(within < config.develop)[:, 0]
        self.held = torch.nonzero((within >= config.develop) & (within < apart))[:, 0]

    def judged(self, config: ClassificationConfig) -> list[tuple[Source, Tensor]]:
        """What is evaluated."""
        if config.judge == "develop":
            if not len(self.develop):
                raise Problem("--judge develop wants pictures set aside: --develop must be at least 1, got 0")
            return [(self.train_source, self.develop)]
        parts: list[tuple[Source, Tensor]] = [(self.test_source, torch.arange(len(self.test_source.labels)))]
        return [*parts, (self.train_source, self.held)] if len(self.held) else parts


def _within_class(labels: Tensor) -> Tensor:
    """The place of each picture among those of its class."""
    order = labels.argsort(stable=True)
    starts = torch.bincount(labels).cumsum(0).roll(1)
    starts[0] = 0
    places = torch.empty_like(labels)
    places[order] = torch.arange(len(labels)) - starts[labels[order]]
    return places
