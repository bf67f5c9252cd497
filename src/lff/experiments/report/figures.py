"""Figures as SVG text for one page: its own colours, light or dark, and no reference to anything outside."""

import io
import math
import re
from collections.abc import Collection
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression  # type: ignore[import-untyped]

from lff.experiments.report.findings import COLOURS, Findings
from lff.experiments.statistics import Estimate, estimate

# Drawn with these, and replaced by the page's variables in the text: the page decides what they look like.
INK, SOFT, RULE = "#010101", "#020202", "#030303"
METHOD = [f"#0404{i:02x}" for i in range(COLOURS + 1)]
VARIABLES = {INK: "--ink", SOFT: "--soft", RULE: "--rule", **{colour: f"--m{i}" for i, colour in enumerate(METHOD)}}
STYLES: list[Any] = ["solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
SETTINGS: Any = {
    "font.size": 12,
    "axes.edgecolor": RULE,
    "axes.labelcolor": SOFT,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
}


@matplotlib.rc_context(SETTINGS)
def curves(findings: Findings, panel: str = "", methods: Collection[str] | None = None) -> str | None:
    """The primary measure over the steps: means over the finished runs, with 95 % bands. None where nothing was measured.

    Args:
        findings: of all methods.
        panel: what tells this figure from others on the page.
        methods: those that are drawn; by default all.
    """
    key, lines = findings.primary.key, []
    for row in (row for row in findings.rows if methods is None or row.method in methods):
        points = [run.points(key) for run in findings.comparison.finished(row.method)]
        steps = sorted(set.intersection(*map(set, points))) if points else []
        found = _finite({float(step): estimate([p[step] for p in points]) for step in steps})
        if found:
            lines.append((row.method, row.method, STYLES[findings.dashes(row.method) % len(STYLES)], found))
    return _lines(findings, lines, f"curves{panel}", "Step") if lines else None


@matplotlib.rc_context(SETTINGS)
def sizes(findings: Findings) -> str | None:
    """The primary measure against the size of the image. None where no other size was asked for."""
    lines = []
    for size in findings.sizes:
        found = _finite(dict(size.at))
        if len(found) > 1:
            style = "solid" if size.asked in ("rescale", "trained") else STYLES[1] if size.asked == "extend" else STYLES[2]
            lines.append((size.method, f"{size.method}, {size.asked}", style, found))
    return _lines(findings, lines, "sizes", "Image size relative to the trained one", at_points=True) if lines else None


def _finite(found: dict[float, Estimate | None]) -> dict[float, Estimate]:
    return {x: e for x, e in found.items() if e and math.isfinite(e.mean)}


def _lines(
    findings: Findings, lines: list[tuple[str, str, Any, dict[float, Estimate]]], name: str, x: str, *, at_points: bool = False
) -> str:
    """A figure of lines, each given as method, name, style and what was found at every x: points, or a curve with its band."""
    primary = findings.primary
    figure, axes = _axes(
        10.6, max(4.2, 0.27 * len(lines) + 1.5), right=min(6.0, 0.5 + 0.1 * max(len(label) for _, label, _, _ in lines))
    )
    ends, low, high = [], math.inf, -math.inf
    for method, label, style, found in lines:
        colour = METHOD[findings.colour(method)]
        at, means = list(found), primary.scale * np.array([e.mean for e in found.values()])
        half = primary.scale * np.array([e.half or 0.0 for e in found.values()])
        axes.plot(at, means, color=colour, linestyle=style, linewidth=2, marker="o" if at_points else "", markersize=4)
        if half.any() and not at_points:
            axes.fill_between(at, means - half, means + half, color=colour, alpha=0.13, linewidth=0)
        # Two seeds make bands many times the size of what the curves show: they may leave the frame.
        shown = np.minimum(half, (0.0 if at_points else 0.15) * np.ptp(means))
        low, high = min(low, float((means - shown).min())), max(high, float((means + shown).max()))
        ends.append((label, float(means[-1]), colour, style))
    pad = 0.04 * (high - low) or 1.0
    axes.set_ylim(low - pad, high + pad)
    axes.margins(x=0.01)
    axes.set_xlabel(x)
    if at_points:
        axes.set_xticks(sorted({place for *_, found in lines for place in found}))
    axes.set_title(primary.label, loc="left", fontsize=12, color=SOFT)
    ends.sort(key=lambda end: end[1])
    _name(axes, ends, gap=16 / 72 / (axes.get_position().height * figure.get_figheight()))
    last = "; ".join(f"{label} {value:.{primary.digits}f}" for label, value, _, _ in reversed(ends))
    return to_svg(figure, name, f"{primary.label} against {x.lower()}. At the right end: {last}.")


def _name(axes: Axes, ends: list[tuple[str, float, str, Any]], *, gap: float) -> None:
    """Writes each line's name at its end, moved as little as keeps them `gap` apart."""
    bottom, top = axes.get_ylim()
    own = np.array([(value - bottom) / (top - bottom) for _, value, _, _ in ends])
    order = gap * np.arange(len(ends))
    places = np.clip(isotonic_regression(own - order).x, 0.0, max(0.0, 1.0 - order[-1])) + order  # and inside the frame
    for (label, _, colour, style), here, place in zip(ends, own, places, strict=True):
        line: Any = {"color": colour, "linestyle": style, "linewidth": 2, "clip_on": False, "transform": axes.transAxes}
        axes.plot([1.005, 1.025, 1.06], [here, place, place], **line)
        axes.text(1.07, place, label, transform=axes.transAxes, va="center_baseline", fontsize=12)


def _axes(width: float, height: float, *, right: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0.55 / width, 0.62 / height, (width - 0.55 - right) / width, (height - 1.0) / height))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(SOFT)
    axes.tick_params(length=0, pad=6, labelcolor=SOFT)
    axes.grid(axis="y", color=RULE, linewidth=1)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.label.set_color(SOFT)
    return figure, axes


def to_svg(figure: Figure, name: str, alt: str) -> str:
    """The figure for a page: its colours and fonts, `name` before the ids that are needed, and `alt` for who cannot see it."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lff"}):
        figure.savefig(out, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    text = out.getvalue()
    text = text[text.index("<svg") :]
    box = re.search(r'viewBox="[^"]+"', text)
    text = re.sub(r"<svg[^>]*>", lambda _: f'<svg {box[0] if box else ""} role="img" aria-label="{escape(alt)}">', text, count=1)
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = text.replace("xlink:href", "href").replace(
        '<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>', ""
    )
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"font-family: [^;\"]+;? ?", "", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text.strip()
