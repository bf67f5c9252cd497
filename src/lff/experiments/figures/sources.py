"""What pictures are made of: runs of the folders that are asked for, their encodings, and the positions of a data set."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Num
from safetensors.torch import load_file
from torch import Tensor

import lff
from lff import analysis
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.experiments.figures.paper import Needed
from lff.experiments.folder import writing
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.records import FINAL, INITIAL, Comparison, Run, read

POSITIONS = "positions.npz"
#: Boxes of screens have coordinates from 0 to 99, as in the widget captioning data.
SCREEN = (100, 100)


class Sources:
    """The comparisons of some folders.

    Args:
        folders: each the --out of `lff compare`.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.comparisons: list[Comparison] = [read(folder) for folder in folders]

    def task(self, name: str | None) -> list[Comparison]:
        return [c for c in self.comparisons if name is None or c.about["task"] == name]

    def runs(self, task: str | None, row: Needed) -> list[Run]:
        """The finished runs of a row of a figure, all of one comparison and with the same options: the plain row first."""
        for comparison in self.task(task):
            found = [run for run in comparison.runs if run.final is not None and matches(run, row)]
            if found:
                label = min((run.method for run in found), key=lambda method: (method != str(row), len(method)))
                return [run for run in found if run.method == label]
        return []

    def kept(self, task: str | None, row: Needed) -> Run | None:
        """A run of a row that has kept its encoding."""
        return next((run for run in self.runs(task, row) if (run.folder / FINAL).is_dir()), None)

    def positions(self, task: str) -> tuple[Tensor, Tensor] | None:
        """The boxes of training and of testing that a comparison has noted."""
        for comparison in self.task(task):
            file = comparison.folder / POSITIONS
            if file.exists():
                try:
                    with np.load(file) as arrays:
                        return torch.from_numpy(arrays["train"]), torch.from_numpy(arrays["test"])
                except (KeyError, ValueError, OSError) as broken:
                    raise Problem(f"{file} must hold the arrays train and test, got {broken}") from broken
        return None


def save_positions(folder: Path, train: Num[Tensor, "n 4"], test: Num[Tensor, "k 4"]) -> None:
    """Notes the boxes of a data set in the folder of a comparison, for the paper's Figures 4 and 16."""
    with writing(folder / POSITIONS):
        np.savez_compressed(folder / POSITIONS, train=train.numpy(), test=test.numpy())


def matches(run: Run, row: Needed) -> bool:
    """Whether a run is one of a row: its method, with the KL loss or without."""
    method = parse(run.method)
    kl = method.options.get("kl", run.config.get("kl", 0.0))
    return method.name == row.name and bool(kl) == row.kl


def encodings(run: Run) -> dict[str, Encoding]:
    """What a run has kept: initial and trained."""
    kept = {"Initial": run.folder / INITIAL, "Trained": run.folder / FINAL}
    return {title: Encoding.from_pretrained(path) for title, path in kept.items() if path.is_dir()}


def size(run: Run) -> tuple[int, int]:
    """Cells of the grid that a run's pictures have, or of a screen where it has none."""
    rows, cols = run.config.get("grid") or SCREEN
    return rows, cols


def places(run: Run, encoding: Encoding) -> tuple[Float[Tensor, "rows cols 2"], Float[Tensor, "5 2"], Float[Tensor, "5 2"]]:
    """Where a run's encoding is asked: the whole grid and the five cells that are looked from; and these as cells."""
    rows, cols = size(run)
    cells = analysis.landmarks((rows, cols))
    table = any(isinstance(module, Embed) for module in encoding.modules())
    normalised = run.config.get("normalize", False) and not table
    # As the adapter of DETR gives them: in (0, 1], counted from 1. Tables always count cells.
    grid = lff.grid((rows, cols), normalize=True, first=1) if normalised else lff.grid((rows, cols))
    return grid, torch.stack([grid[int(row), int(col)] for row, col in cells]), cells


def table_of(file: Path) -> Encoding:
    """The table of positions in a model's safetensors: the only matrix whose name speaks of positions."""
    try:
        tensors = load_file(file)
    except Exception as error:  # whatever a damaged file makes of it
        raise Problem(f"--table must be a safetensors file, got {file}: {error}") from error
    found = {name: t for name, t in tensors.items() if "position" in name and "weight" in name and t.ndim == 2}
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise Problem(f"--table must hold one matrix named as a table of positions, got {names} in {file}")
    return analysis.table(next(iter(found.values())).float())
