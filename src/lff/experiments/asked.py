"""Where the host of a run asks its encoding: the cells of its pictures, in the units that it was trained with."""

import math

from jaxtyping import Float
from torch import Tensor

import lff
from lff.experiments.methods import parse
from lff.experiments.records import Run

#: Boxes of screens have coordinates from 0 to 99, as in the widget captioning data.
SCREEN = (100, 100)
#: Tasks that give an MLP on raw coordinates, and no other method, positions of order one.
BY_METHOD = ("classification", "generation", "captioning")


def size(run: Run) -> tuple[int, int]:
    """Cells of the grid that a run's pictures have, or of a screen where it has none."""
    rows, cols = run.config.get("grid") or SCREEN
    return rows, cols


def normalized(run: Run) -> bool:
    """Whether the host gave positions from 0 to 1: as the row says, or the run's settings, where tables always count cells."""
    method = parse(run.method)
    if "normalize" in method.options:
        return bool(method.options["normalize"])
    if "normalize" in run.config:
        return bool(run.config["normalize"]) and not method.name.startswith("Embed")
    return method.name == "MLP" and run.config.get("task") in BY_METHOD


def own_sines(run: Run) -> bool:
    """Whether the encoding was DETR's own, which is no module that could be kept: Eq. 1 on positions in (0, 2 pi]."""
    return run.config.get("task") == "detection" and run.method == "Sine-2D" and normalized(run)


def cells(run: Run) -> Float[Tensor, "rows cols 2"]:
    """The position of every cell."""
    where = size(run)
    if not normalized(run):
        return lff.grid(where)
    if run.config.get("task") == "captioning":
        return lff.grid(where) / (SCREEN[0] - 1)
    if run.config.get("task") == "detection":  # DETR counts from 1
        return lff.grid(where, normalize=True, first=1) * (2 * math.pi if own_sines(run) else 1)
    return lff.grid(where, normalize=True)
