"""`lff positions`: how often positions occur in training, and where those lie that do not."""

import json
from pathlib import Path

import torch

from lff.analysis import draw
from lff.experiments.folder import write
from lff.experiments.tasks.captioning import positions
from lff.experiments.tasks.captioning.screens import Split


def report(split: Split, out: Path) -> dict[str, int]:
    """Writes positions.json, histogram.svg and hull.svg; gives the numbers."""
    counted = positions.summary(split.train, split.test)
    known, _, found = positions.unseen(split.train, split.test)
    out.mkdir(parents=True, exist_ok=True)
    write(out / "positions.json", json.dumps(counted, indent=1))
    draw.positions(torch.from_numpy(known)).savefig(out / "histogram.svg")
    draw.hull(found).savefig(out / "hull.svg")
    return counted
