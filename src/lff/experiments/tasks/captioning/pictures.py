"""`lff positions`: how often positions occur in training, and where those lie that do not."""

import json
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy import spatial  # type: ignore[import-untyped]

from lff.experiments.folder import write
from lff.experiments.tasks.captioning import positions
from lff.experiments.tasks.captioning.screens import Split

NAMES = ("top", "left", "bottom", "right")
DARK, RED = "#1f4e79", "#c1440e"


def report(split: Split, out: Path) -> dict[str, int]:
    """Writes positions.json, histogram.svg and hull.svg; gives the numbers."""
    found = positions.summary(split.train, split.test)
    out.mkdir(parents=True, exist_ok=True)
    write(out / "positions.json", json.dumps(found, indent=1))
    histogram(split, out / "histogram.svg")
    hull(split, out / "hull.svg")
    return found


def histogram(split: Split, file: Path) -> None:
    """How often each value of each coordinate occurs on training screens."""
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    for axis, (axes, counts) in enumerate(
        zip(figure.subplots(1, 4, sharey=True), positions.counts(positions.of_elements(split.train)), strict=True)
    ):
        axes.bar(np.arange(len(counts)), counts, width=1.0, color=DARK)
        axes.set_yscale("log")
        axes.set_xlabel(f"{NAMES[axis]}, 0 to 99")
        axes.spines[["top", "right"]].set_visible(False)
    figure.supylabel("Elements on training screens", fontsize=10)
    _save(figure, file)


def hull(split: Split, file: Path) -> None:
    """Unseen test positions and the hull of the training positions, both on the two principal components of the latter."""
    known, asked = positions.of_elements(split.train), positions.of_targets(split.test)
    unseen = asked[~positions.seen(asked, known)]
    inner = positions.inside(unseen, known)
    cloud, points = positions.plane(np.unique(known, axis=0), unseen)
    corners = cloud[spatial.ConvexHull(cloud).vertices]
    around = np.vstack([corners, corners[:1]])
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(*around.T, color=RED, linestyle="dashed", label="hull of training positions")
    axes.plot(*points[inner].T, "o", markersize=3, color=DARK, label=f"unseen, inside of it in 4-D: {int(inner.sum()):,}")
    axes.plot(*points[~inner].T, "x", markersize=6, color=RED, label=f"unseen, outside: {int((~inner).sum()):,}")
    axes.set(xlabel="First principal component", ylabel="Second principal component")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.14))
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, file)


def _save(figure: Figure, file: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "lff", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None})
