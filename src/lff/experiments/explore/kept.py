"""The encodings that runs have kept, from their start to the end of training, as the page takes them."""

import re
from pathlib import Path
from typing import Any

import lff
from lff.encodings.pretrained import CONFIG, WEIGHTS
from lff.experiments import asked
from lff.experiments.explore.node import node
from lff.experiments.records import FINAL, INITIAL, Run, read

SHOWN = (2, 4)  # coordinates: points and boxes


def collect(folder: Path | None) -> tuple[list[dict[str, Any]], list[str]]:
    """The runs of a folder, and a sentence for each that cannot be shown.

    Args:
        folder: of a comparison (`lff compare --out`), or one that `save_pretrained` wrote; None for no runs.
    """
    if folder is None:
        return [], []
    if (folder / WEIGHTS).exists() or (folder / CONFIG).exists():
        name = folder.resolve().name
        return [_run(name, (name, ""), [(folder, "as it was saved")], folder) | {"normalize": None}], []
    runs, notes = [], []
    for run in read(folder).runs:
        stops = _stops(run)
        seed = f"seed {run.seed}"
        if not stops:
            continue
        try:
            host = {"normalize": asked.normalized(run)}
            runs.append(_run(run.folder.name, (run.method, seed), stops, folder, run.config.get("grid")) | host)
        except ValueError as unreadable:
            notes.append(f"{run.method}, {seed} is left out: {unreadable}")
    return runs, notes


def _run(name: str, title: tuple[str, str], stops: list[tuple[Path, str]], folder: Path, grid: Any = None) -> dict[str, Any]:
    encodings = [lff.Encoding.from_pretrained(path) for path, _ in stops]
    coords = encodings[0].coords
    if coords not in SHOWN:
        raise ValueError(f"the page shows positions of 2 or 4 coordinates, got {coords}")
    return {
        "id": name,
        "title": title[0],
        "note": title[1],
        "coords": coords,
        "grid": grid if grid and len(grid) == 2 else None,
        "stops": [
            {"label": label, "path": _named(path, folder), "encoding": node(encoding, grid)}
            for (path, label), encoding in zip(stops, encodings, strict=True)
        ],
    }


def _named(path: Path, folder: Path) -> str:
    """A path as the user wrote it; of an absolute one only the folder itself, since the page may travel."""
    return (path.relative_to(folder.parent) if folder.is_absolute() else path).as_posix()


def _stops(run: Run) -> list[tuple[Path, str]]:
    """The encodings that a run has kept, with what to call them: at the start, at steps, at the end."""
    kept = (run.folder / INITIAL).parent.glob("encoding-*")
    numbered = [(match[1], path) for path in kept if (match := re.fullmatch(r"encoding-(?:step-)?(\d+)", path.name))]
    between = sorted((int(step), path) for step, path in numbered)
    stops = [(path, f"step {step:,}") for step, path in between]
    if (run.folder / INITIAL).is_dir():
        stops.insert(0, (run.folder / INITIAL, "at initialisation"))
    if (run.folder / FINAL).is_dir():
        stops.append((run.folder / FINAL, f"trained, step {run.step:,}"))
    return stops
