"""Pictures of the numbers of `lff.analysis`. Each returns a figure that a notebook shows and `.savefig` writes.

Needs matplotlib: pip install 'lff[experiments]'.
"""

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float, Num
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from lff.analysis.falloff import Falloff
from lff.analysis.hull import Hull
from lff.analysis.spectrum import Spectrum

INK, SOFT, RULE = "#222222", "#666666", "#dddddd"
COLOURS = ("#3b6fb6", "#c8553d", "#2a8c6e", "#8a5bb0", "#b8860b", "#5a6470", "#d1639a", "#4ba3c3", "#7a8f2f", "#a04b4b")
MAP = "viridis"
PLACES = ("Top left", "Top right", "Centre", "Bottom left", "Bottom right")
STYLE: Any = {"font.size": 9, "axes.edgecolor": SOFT, "axes.labelcolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT}


class Picture(Figure):
    """A figure that shows itself in a notebook without pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


@matplotlib.rc_context(STYLE)
def maps(
    rows: Mapping[str, Float[Tensor, "k rows cols"]] | Float[Tensor, "k rows cols"],
    at: Num[Tensor, "k 2"],
    *,
    names: Sequence[str] | None = None,
) -> Picture:
    """Similarity maps, a row of them for each entry (initial, trained) and one for each place that is looked from.

    All share one scale of colours, from the least similarity in any of them to 1.

    Args:
        rows: what `similarity` gave over a grid; a name for each row.
        at: the cells that are looked from, marked on the left and below.
        names: of these cells; by default those of `landmarks`, or none.
    """
    rows = rows if isinstance(rows, Mapping) else {"": rows}
    names = names or (PLACES if len(at) == len(PLACES) else [""] * len(at))
    low = min(0.0, *(math.floor(10 * float(row.min())) / 10 for row in rows.values()))
    height, width = next(iter(rows.values())).shape[1:]
    figure = Picture(figsize=(0.9 + 1.75 * len(at), 0.35 + 1.75 * len(rows) * height / width), layout="constrained")
    grid = figure.subplots(len(rows), len(at), squeeze=False)
    image = None
    for line, (title, row) in zip(grid, rows.items(), strict=True):
        for axes, values, place in zip(line, row, at, strict=True):
            image = axes.imshow(values.numpy(), cmap=MAP, vmin=low, vmax=1)
            # Outside of the map: a ring at the place would hide a ball of a few cells.
            axes.set(xticks=[float(place[1])], yticks=[float(place[0])], xticklabels=[], yticklabels=[])
            axes.tick_params(length=5, width=1.2, color=INK)
        line[0].set_ylabel(title, fontsize=10, color=INK)
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name, fontsize=10, color=INK)
    assert image is not None
    figure.colorbar(image, ax=grid, shrink=0.8, pad=0.01).outline.set_visible(False)
    return figure


@matplotlib.rc_context(STYLE)
def matrix(similarities: Float[Tensor, "n n"], *, what: str = "Position") -> Picture:
    """The similarity of every place in a row to every other: the paper's Figure 1."""
    figure = Picture(figsize=(4.6, 3.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(similarities.numpy(), cmap=MAP, vmin=min(0.0, float(similarities.min())), vmax=1)
    axes.set(xlabel=what, ylabel=what)
    figure.colorbar(image, ax=axes, label="Similarity").outline.set_visible(False)
    return figure


@matplotlib.rc_context(STYLE)
def spectra(spectra: Mapping[str, Spectrum] | Spectrum) -> Picture:
    """W_r as points and as a histogram of all its weights, beside the normal distribution of the same mean and spread.

    The scatter shows the first two coordinates, and is left out where there is one.
    """
    spectra = spectra if isinstance(spectra, Mapping) else {"": spectra}
    flat = all(s.w_r.shape[1] > 1 for s in spectra.values())
    limit = 1.05 * max(float(s.w_r.abs().max()) for s in spectra.values())
    figure = Picture(figsize=(2.7 * len(spectra), 4.9 if flat else 2.4), layout="constrained")
    grid = figure.subplots(1 + flat, len(spectra), squeeze=False, sharex=True, height_ratios=[2, 1] if flat else [1])
    for column, (title, found) in enumerate(spectra.items()):
        if flat:
            _points(grid[0, column], found, limit)
        _weights(grid[-1, column], found, limit)
        grid[0, column].set_title(title, fontsize=10, color=INK)
        grid[-1, column].set_xlabel("weight, radians a unit")
    top = max(axes.get_ylim()[1] for axes in grid[-1])
    for axes in grid[-1]:
        axes.set_ylim(0, top)
    return figure


def _points(axes: Axes, found: Spectrum, limit: float) -> None:
    axes.axhline(0, color=RULE, lw=1)
    axes.axvline(0, color=RULE, lw=1)
    axes.plot(found.w_r[:, 1].numpy(), found.w_r[:, 0].numpy(), ".", ms=4, alpha=0.6, color=COLOURS[0], mec="none")
    axes.set(xlim=(-limit, limit), ylim=(limit, -limit), aspect="equal")
    axes.text(0.03, 0.03, f"stretch {found.stretch:.2f}", transform=axes.transAxes, color=SOFT)


def _weights(axes: Axes, found: Spectrum, limit: float) -> None:
    axes.hist(found.w_r.flatten().numpy(), bins=41, range=(-limit, limit), density=True, color=COLOURS[0], alpha=0.6)
    at = np.linspace(-limit, limit, 201)
    if found.std > 0:
        curve = np.exp(-((at - found.mean) ** 2) / (2 * found.std**2)) / (found.std * math.sqrt(2 * math.pi))
        axes.plot(at, curve, color=INK, lw=1)
    axes.set_yticks([])
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.set_title(f"mean {found.mean:.3g}, std {found.std:.3g}", fontsize=8, color=SOFT)


@matplotlib.rc_context(STYLE)
def falloffs(falloffs: Mapping[str, Falloff] | Falloff) -> Picture:
    """Left, similarity against distance: the mean over directions and its range. Right, where it has fallen by half.

    A direction in which it has not fallen by half within the reach has no point on the right.
    """
    falloffs = falloffs if isinstance(falloffs, Mapping) else {"": falloffs}
    figure = Picture(figsize=(8.4, 3.8), layout="constrained")
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="polar")
    for (name, found), colour in zip(falloffs.items(), COLOURS, strict=False):
        values, distances = found.similarity.numpy(), found.distances.numpy()
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        left.fill_between(distances, low, high, color=colour, alpha=0.18, lw=0)
        left.plot(distances, found.mean.numpy(), color=colour, lw=1.8, label=f"{name} ({_said(found)})".strip())
        half = found.half().nan_to_num(posinf=math.nan).numpy()
        angles = found.angles.numpy()
        right.plot([*angles, angles[0]], [*half, half[0]], color=colour, lw=1.8)
    left.axhline(0.5, color=RULE, lw=1, zorder=0)
    left.set(xlabel="Distance", ylabel="Similarity")
    left.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, fontsize=8)
    right.set_theta_direction(-1)  # type: ignore[attr-defined]  # rows grow downwards
    right.set_xticklabels([])
    right.set_title("Distance at which it has fallen by half", fontsize=9, color=SOFT)
    return figure


def _said(found: Falloff) -> str:
    if math.isnan(found.roundness()):
        return "does not fall by half"
    return (
        f"roundness {found.roundness():.3g}" if math.isfinite(found.roundness()) else "in some directions does not fall by half"
    )


@matplotlib.rc_context(STYLE)
def hull(found: Hull, *, known: str = "hull of the training positions", asked: str = "unseen positions") -> Picture:
    """Positions in the plane in which the known ones spread most, and the outline of these: the paper's Figure 16."""
    figure = Picture(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(*found.known.T.numpy(), ".", ms=1.5, color=RULE, zorder=0)
    corners = found.outline[[*range(len(found.outline)), 0]].numpy()
    axes.plot(corners[:, 0], corners[:, 1], "--", color=COLOURS[1], lw=1.5, label=known)
    axes.plot(
        *found.asked[found.inside].T.numpy(), ".", ms=4, color=COLOURS[0], label=f"{asked}, {int(found.inside.sum())} in the hull"
    )
    if (~found.inside).any():
        out = found.asked[~found.inside]
        axes.plot(*out.T.numpy(), "x", ms=5, color=INK, label=f"{asked}, {len(out)} outside of it")
    axes.set(xlabel="first principal component", ylabel="second", aspect="equal")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


@matplotlib.rc_context(STYLE)
def positions(boxes: Num[Tensor, "n 4"]) -> Picture:
    """How often each value of a box's coordinates occurs: the paper's Figure 4. A bar for every whole number, or a hundred."""
    whole = bool((boxes == boxes.round()).all())
    # Bars of another width would be empty, or hold two values, here and there.
    edges = np.arange(float(boxes.min()) - 0.5, float(boxes.max()) + 1) if whole else 100
    figure = Picture(figsize=(9.6, 2.3), layout="constrained")
    for axes, name, values in zip(figure.subplots(1, 4, sharey=True), ("top", "left", "bottom", "right"), boxes.T, strict=True):
        axes.hist(values.numpy(), bins=edges, color=COLOURS[0])
        axes.set_yscale("log")
        axes.set_xlabel(name)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
