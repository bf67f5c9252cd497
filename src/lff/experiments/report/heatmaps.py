"""Pictures of what encodings take for near: similarities over a grid before and after training, one picture a method."""

import math
from pathlib import Path

import matplotlib
import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from matplotlib.figure import Figure

import lff
from lff.analysis.similarity import similarity
from lff.experiments import asked
from lff.experiments.records import FINAL, INITIAL, Comparison, Run
from lff.experiments.report.figures import INK, SETTINGS, SOFT, to_svg

SIDE = 3  # reference positions along either axis of the grid
Tiles = Float[np.ndarray, "k rows cols"]


def heat_maps(comparison: Comparison) -> tuple[dict[str, str], list[str]]:
    """An SVG for every method with encodings in its first run, and a sentence for each whose encodings cannot be read.

    Colours go from the smallest similarity in any picture to 1, so that pictures can be compared.
    """
    found, notes = {}, []
    for method in comparison.methods:
        run = next((run for run in comparison.runs if run.method == method), None)
        try:
            pictures = _pictures(run) if run else {}
        except ValueError as unreadable:
            notes.append(f"No picture for {method}: {str(unreadable).replace(f'{comparison.folder}/', '')}.")
            continue
        if run and pictures:
            found[method] = (run, pictures)
    low = min((float(tiles.min()) for _, pictures in found.values() for tiles in pictures.values()), default=0.0)
    low = min(math.floor(10 * low) / 10, 0.9)
    svgs = {
        method: _picture(f"similarity-{i}", pictures, _reference(run), low)
        for i, (method, (run, pictures)) in enumerate(found.items())
    }
    return svgs, notes


def _reference(run: Run) -> Float[np.ndarray, "k 2"]:
    """Where the references lie: 3 x 3 cells, as far from each other as from the border."""
    rows, cols = ([round((2 * i + 1) * n / (2 * SIDE) - 0.5) for i in range(SIDE)] for n in run.config["grid"])
    return np.array([(row, col) for row in rows for col in cols], dtype=np.float32)


def _pictures(run: Run) -> dict[str, Tiles]:
    """The similarities to every reference position, for the encodings that the run has kept."""
    if len(run.config.get("grid") or ()) != 2:
        return {}
    kept = {"Before training": run.folder / INITIAL, "After training": run.folder / FINAL}
    return {title: _tiles(path, run) for title, path in kept.items() if path.is_dir()}


def _tiles(path: Path, run: Run) -> Tiles:
    cells = asked.cells(run)
    at = torch.stack([cells[int(row), int(col)] for row, col in _reference(run)])
    return similarity(lff.Encoding.from_pretrained(path), cells, at).numpy()


@matplotlib.rc_context(SETTINGS)
def _picture(name: str, pictures: dict[str, Tiles], at: Float[np.ndarray, "k 2"], low: float) -> str:
    rows, cols = next(iter(pictures.values())).shape[1:]
    width, height = 2.45, 2.45 * min(max(rows / cols, 0.5), 2.0)  # inches
    whole = (0.1 + 2 * (width + 0.15) + 0.6, height + 0.4)
    figure = Figure(figsize=whole)
    for i, (title, tiles) in enumerate(pictures.items()):
        axes = figure.add_axes(_box(0.05 + (width + 0.15) * i, 0.05, width, height, whole))
        gap = max(1, round(max(rows, cols) / 16))
        down, across = rows + gap, cols + gap
        canvas = np.full((SIDE, SIDE, down, across), math.nan)
        canvas[:, :, :rows, :cols] = rearrange(tiles, "(i j) r c -> i j r c", i=SIDE)
        mosaic = rearrange(canvas, "i j r c -> (i r) (j c)")[:-gap, :-gap]
        axes.imshow(mosaic, vmin=low, vmax=1, cmap="viridis", interpolation="none", aspect="auto")
        tile = np.arange(SIDE * SIDE)
        points = (tile % SIDE * across + at[:, 1], tile // SIDE * down + at[:, 0])
        axes.plot(*points, "o", markersize=5, markerfacecolor="none", markeredgecolor="#ffffff", markeredgewidth=1.4)
        axes.set_axis_off()
        axes.set_title(title, loc="left", fontsize=13, color=INK)
    scale = figure.add_axes(_box(0.1 + 2 * (width + 0.15), 0.05, 0.12, height, whole))
    scale.imshow(np.linspace(1, low, 64)[:, None], extent=(0, 1, low, 1), cmap="viridis", aspect="auto")
    scale.set_xticks([])
    scale.yaxis.tick_right()
    scale.tick_params(length=0, labelsize=11, labelcolor=SOFT)
    scale.spines[:].set_visible(False)
    return to_svg(figure, name, f"Similarity over the grid to {len(at)} cells of it, {' and '.join(pictures).lower()}.")


def _box(
    left: float, bottom: float, width: float, height: float, whole: tuple[float, float]
) -> tuple[float, float, float, float]:
    return left / whole[0], bottom / whole[1], width / whole[0], height / whole[1]
