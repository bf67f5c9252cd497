"""How a model is trained, the same for every method; a task adds what its model and data need."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lff.experiments.problems import Problem


@dataclass(frozen=True)
class Config:
    """The settings of a comparison. A preset is a function that returns one."""

    methods: tuple[str, ...] = ("Learnable-Fourier+MLP",)
    """Rows to compare: keys of lff.METHODS, options in brackets, as "Learnable-Fourier+MLP(gamma=4, hidden=64)"."""
    seeds: int = 1
    """How many, from 0 on. A seed gives every method the same host weights and the same data in the same order."""
    steps: int = 1000
    """Optimiser steps."""
    batch: int = 64
    """Samples of a step, over all processes and accumulated parts."""
    rate: float = 1e-3
    """Peak learning rate."""
    warmup: int = 0
    """Steps of linear warm-up."""
    schedule: Literal["constant", "cosine", "rsqrt", "drop"] = "cosine"
    """After the warm-up: cosine to `end`; reciprocal square root of the step; or a tenth from `drop` steps on."""
    end: float = 0.0
    """The rate at which the cosine ends."""
    drop: int = 0
    """The step at which the schedule "drop" falls to a tenth."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Of AdamW."""
    eps: float = 1e-8
    """Of AdamW."""
    weight_decay: float = 0.0
    """Of AdamW, on the weights of dense and convolutional layers; encodings and tables are spared."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 for none."""
    accumulate: int = 1
    """Parts that a step's batch is cut into, one after the other."""
    kl: float = 0.0
    """Weight of the KL loss (Eq. 11) on methods with learnable frequencies."""
    precision: Literal["32", "bf16"] = "32"
    """Compute dtype: float32, or bfloat16 autocast."""
    compile: Literal["no", "layers", "whole", "graphs", "step"] = "no"
    """Compile the layers that are alike, or the whole model; "graphs" also replays it as CUDA graphs. "step" compiles layers and
    replays all of a step, from batch to optimiser, as one CUDA graph: for a single process on a GPU, where the task can."""
    evaluate_every: int = 100
    """Steps between evaluations."""
    checkpoint_every: int = 500
    """Steps between checkpoints; one is also written when the run is told to stop."""
    log_every: int = 20
    """Steps between lines of the training log."""
    tensorboard: bool = True
    """Also log for TensorBoard."""

    def __post_init__(self) -> None:
        for name in ("seeds", "steps", "batch", "accumulate", "evaluate_every", "checkpoint_every", "log_every"):
            if getattr(self, name) < 1:
                raise Problem(f"--{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}")
        if not self.methods:
            raise Problem("--methods must name at least one, got none")
        if self.batch % self.accumulate:
            raise Problem(f"--batch must be a multiple of --accumulate, got {self.batch} and {self.accumulate}")

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        now = step + 1
        if now < self.warmup:
            return self.rate * now / self.warmup
        if self.schedule == "cosine":
            done = (now - self.warmup) / max(1, self.steps - self.warmup)
            return self.end + (self.rate - self.end) * (1 + math.cos(math.pi * min(1.0, done))) / 2
        if self.schedule == "rsqrt":
            return self.rate * math.sqrt(max(1, self.warmup) / max(1, now))
        return self.rate * (0.1 if self.schedule == "drop" and step >= self.drop else 1.0)

    def shared(self) -> dict[str, Any]:
        """What two runs of one comparison have in common: all but the lists of methods and seeds, as JSON knows it."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key not in ("methods", "seeds")
        }


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """`name: old -> new` for every setting that differs."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name}: {old.get(name)!r} -> {new.get(name)!r}" for name in names)
