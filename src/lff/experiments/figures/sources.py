"""What pictures are made of: runs of the folders that are asked for, their encodings, and the boxes of a data set."""

import functools
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor

import lff
from lff import analysis
from lff.encodings.encoding import Encoding
from lff.experiments import asked
from lff.experiments.figures.paper import Needed
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.records import FINAL, INITIAL, Comparison, Run, read


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
        return next((run for run in self.runs(task, row) if "Trained" in encodings(run)), None)


def matches(run: Run, row: Needed) -> bool:
    """Whether a run is one of a row: its method, with the KL loss or without."""
    method = parse(run.method)
    kl = method.options.get("kl", run.config.get("kl", 0.0))
    return method.name == row.name and bool(kl) == row.kl


def encodings(run: Run) -> dict[str, Encoding]:
    """What a run has kept: initial and trained."""
    if asked.own_sines(run):
        return dict.fromkeys(("Initial", "Trained"), lff.Sine(2, run.config["width"]))
    kept = {"Initial": run.folder / INITIAL, "Trained": run.folder / FINAL}
    return {title: Encoding.from_pretrained(path) for title, path in kept.items() if path.is_dir()}


def places(run: Run) -> tuple[Float[Tensor, "rows cols 2"], Float[Tensor, "5 2"], Float[Tensor, "5 2"]]:
    """Where a run's encoding is asked: the whole grid and the five cells that are looked from; and these as cells."""
    cells = analysis.landmarks(asked.size(run))
    grid = asked.cells(run)
    return grid, torch.stack([grid[int(row), int(col)] for row, col in cells]), cells


@functools.lru_cache(maxsize=1)  # two figures show them
def boxes(data: Path | None) -> tuple[Int[Tensor, "train 4"], Int[Tensor, "unseen 4"], analysis.Hull]:
    """Of a captioning data set, or of the package's: boxes of training, unseen ones of widgets to caption, and their hull."""
    from lff.experiments.tasks.captioning import positions
    from lff.experiments.tasks.captioning.source import read as read_screens

    split = read_screens(data, pixels=False, own_text=False).split
    known, others, found = positions.unseen(split.train, split.test)
    return torch.from_numpy(known), torch.from_numpy(others), found


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
