"""What a task is: a model for a method, its data, its loss and its measures. The engine does the rest."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from lff.encodings.encoding import Encoding
from lff.experiments.config import Config
from lff.experiments.measures import Measure as Measure  # part of what a task of one's own needs
from lff.experiments.methods import Row

C = TypeVar("C", bound=Config)


class Request(NamedTuple):
    """What this process takes of a step's batch: samples, and for each a random number that decides its augmentation."""

    indices: Tensor
    keys: Tensor


@dataclass(frozen=True)
class World:
    """The processes that train together. One process is rank 0 of 1."""

    rank: int
    size: int
    device: torch.device
    #: The sum of a tensor over all processes.
    sum: Callable[[Tensor], Tensor]

    def share(self, count: int) -> range:
        """The part of `count` samples that this process evaluates."""
        return range(self.rank * count // self.size, (self.rank + 1) * count // self.size)


class Task(ABC, Generic[C]):
    """Subclass it for a task of your own; `lff compare my_module:MyTask` runs it.

    Args:
        config: what `presets` gave, with what the command line changed.
        data: the folder of the data set; None for data that ships with the package.
    """

    #: The method that the others are compared with: what the host comes with.
    default: ClassVar[str]
    #: Of the final evaluation; the first is the one that decides.
    measures: ClassVar[tuple[Measure, ...]]
    presets: ClassVar[Mapping[str, Callable[[], Any]]]
    #: Methods whose curves the report draws together, by the title of each figure; without any, all in one.
    panels: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, config: C, data: Path | None) -> None:
        self.config, self.data = config, data

    @property
    @abstractmethod
    def samples(self) -> int:
        """How many there are to train on."""

    @property
    def recordable(self) -> bool:
        """Whether `loss` is a function of a tuple of tensors that never waits for the device: --compile step can replay it."""
        return False

    @abstractmethod
    def model(self, row: Row) -> nn.Module:
        """A model with the method's encoding. The generator is seeded: make the host first, then the encoding."""

    @abstractmethod
    def batch(self, request: Request, device: torch.device) -> Any:
        """The samples of a request, on the device."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """The mean over a batch, by a forward pass of `model`."""

    def alike(self, model: nn.Module, seed: int) -> None:
        """Told before every step a seed that all processes share, for what they must draw alike; torch's own differs by each."""
        return None

    @abstractmethod
    def evaluate(self, model: nn.Module, world: World) -> dict[str, float]:
        """The measures and what else is worth a curve; `model` is in evaluation mode."""

    def final(self, model: nn.Module, world: World) -> dict[str, Any]:
        """The evaluation at the end, which may be a longer one."""
        return dict(self.evaluate(model, world))

    @classmethod
    def published(cls, config: C) -> Mapping[str, Mapping[str, float]]:
        """Numbers to show beside the runs': of a method, its measures."""
        return {}

    @classmethod
    def notes(cls, config: C, data: Path | None) -> list[str]:
        """What a user should know before the runs begin: said once, a line each."""
        return []

    def complete(self, folder: Path) -> None:
        """Called once when all runs of a comparison have ended, before the report; for measures that need other programs."""
        return None

    def batches(self, requests: Iterable[Request], device: torch.device) -> Iterator[Any]:
        """One batch a request, in order; override it to read ahead."""
        return (self.batch(request, device) for request in requests)

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Parameter groups of the optimiser; "factor" multiplies the learning rate.

        Weights of dense and convolutional layers decay; those of encodings, tables, norms and biases do not.
        """
        spared = {id(p) for module in model.modules() if isinstance(module, Encoding) for p in module.parameters()}
        layers = (m for m in model.modules() if isinstance(m, nn.Linear | nn.Conv1d | nn.Conv2d))
        decaying = {id(m.weight): m.weight for m in layers if id(m.weight) not in spared and m.weight.requires_grad}
        others = [p for p in model.parameters() if p.requires_grad and id(p) not in decaying]
        groups: list[dict[str, Any]] = [{"params": list(decaying.values())}, {"params": others, "weight_decay": 0.0}]
        return [group for group in groups if group["params"]]

    def layers(self, model: nn.Module) -> list[nn.Module]:
        """Those that are alike, so that compiling one compiles all; the whole model where a task does not say."""
        return [model]

    def encoding(self, model: nn.Module) -> Encoding | None:
        """The model's encoding, for pictures of it; a model without one that can be shown gives None."""
        return next((module for module in model.modules() if isinstance(module, Encoding)), None)

    def encoding_parameters(self, model: nn.Module) -> int:
        """Learnable numbers that tell positions."""
        encoding = self.encoding(model)
        return sum(p.numel() for p in encoding.parameters()) if encoding is not None else 0

    def keeps(self, model: nn.Module) -> dict[str, Tensor]:
        """Weights that a finished run keeps, for what is done with it later; none where a task does not say."""
        return {}

    def spells(self) -> dict[str, str]:
        """What these weights mean nothing without, such as a vocabulary; kept in their file."""
        return {}

    def about(self) -> dict[str, Any]:
        """What else a run's config should say, "grid" for instance; a run on other data is another run."""
        return {"samples": self.samples}
