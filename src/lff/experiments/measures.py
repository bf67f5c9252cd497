"""What a task measures, and how its tables and figures show it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """What an evaluation measures, and how it is printed: times `scale`, with `digits` decimals."""

    key: str
    label: str
    scale: int | float = 1.0
    digits: int = 3
    larger: bool = True  # is better

    @property
    def name(self) -> str:
        """The label without its unit: "Top-1" of "Top-1, %"."""
        return self.label.rpartition(", ")[0] or self.label

    @property
    def unit(self) -> str:
        return self.label.rpartition(", ")[2] if ", " in self.label else ""

    def best(self, values: Sequence[float]) -> float | None:
        """The best of the values that are finite."""
        finite = [value for value in values if math.isfinite(value)]
        return (max if self.larger else min)(finite) if finite else None
