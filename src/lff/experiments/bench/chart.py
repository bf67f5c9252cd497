"""The rows of a benchmark as a picture: each ratio on a logarithmic axis, with its interval, and the bar that it has to meet."""

import hashlib
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from lff.experiments.bench.row import Bar

INK, SOFT, RULE = "#222222", "#666666", "#dddddd"
COLOURS = {"met": "#1b7f5c", "met within the spread": "#a86a10", "not met": "#c0392b", "": "#4a6fa5"}


def draw(record: dict[str, Any], file: Path) -> None:
    """Draws a record as a PNG, which bears the digest of what it shows.

    Errors are left out, which are no ratios of costs, and so is what failed.
    """
    rows = [row for row in record["rows"] if row["ratio"] is not None and row["unit"]]
    whats = list(dict.fromkeys(row["what"] for row in rows))
    height = 0.27 * (len(rows) + 1.5 * len(whats)) + 1.3
    figure = Figure(figsize=(10.5, height))
    axes = figure.add_axes((0.38, 0.75 / height, 0.46, (height - 1.1) / height))
    at = 0.0
    for what in whats:
        at -= 1.5
        axes.text(
            -0.815, at + 0.75, what, transform=axes.get_yaxis_transform(), va="center", fontsize=9, color=INK, weight="bold"
        )
        for row in (row for row in rows if row["what"] == what):
            _line(axes, row, at)
            at -= 1
    _frame(axes, rows, at)
    figure.text(0.01, 0.12 / height, f"{record['environment']['device']}, {record['date'][:10]}", fontsize=8, color=SOFT)
    figure.savefig(file, dpi=120, metadata={"Software": None, "Description": digest(record)})


def _line(axes: Axes, row: dict[str, Any], at: float) -> None:
    colour = COLOURS[row["verdict"]]
    label = f"{row['of']} / {row['against']}"
    axes.text(-0.795, at, label, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=INK)
    axes.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=5, alpha=0.35, solid_capstyle="butt")
    axes.plot(row["ratio"], at, "o", color=colour, markersize=6)
    if row["bar"] is not None:
        axes.plot([row["bar"]] * 2, [at - 0.42, at + 0.42], color=INK, linewidth=2)
        good = row["bar"] * (0.88 if row["sense"] == "at most" else 1 / 0.88)
        axes.annotate("", (good, at + 0.36), (row["bar"], at + 0.36), arrowprops={"arrowstyle": "->", "color": INK})
    axes.text(1.01, at, _said(row), transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=colour)


def _said(row: dict[str, Any]) -> str:
    if row["bar"] is None:
        return f"{row['ratio']:.4g}"
    met, within, _ = row["verdict"].partition(" within")
    spread = f" ± {row['spread']:.2g}" if within else ""
    return f"{row['ratio']:.4g} ({Bar(row['sense'], row['bar'])}{spread}: {met})"


def _frame(axes: Axes, rows: list[dict[str, Any]], bottom: float) -> None:
    axes.set_xscale("log")
    ends = [value for row in rows for value in (row["low"], row["high"], row["bar"] or 1.0)]
    axes.set_xlim(0.8 * min(ends), 1.25 * max(ends))
    axes.set_ylim(bottom, 0)
    axes.axvline(1.0, color=SOFT, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(colors=SOFT, labelsize=8)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("ratio, median and 95 % interval; upright: the bar, with an arrow to its good side", fontsize=8, color=SOFT)


def digest(record: dict[str, Any]) -> str:
    """Of a record: a picture that bears another was drawn from other numbers."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def digest_of(file: Path) -> str | None:
    """What a picture was drawn from; None where there is none."""
    from PIL import Image

    if not file.exists():
        return None
    with Image.open(file) as picture:
        return picture.info.get("Description")
