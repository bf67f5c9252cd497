"""A measure over the steps: the mean of the runs of each row with its 95 % interval, as in the paper's Figures 3 and 14."""

from collections.abc import Mapping

import matplotlib
import numpy as np

from lff.analysis.draw import COLOURS, INK, RULE, STYLE, Picture
from lff.experiments.measures import Measure
from lff.experiments.records import Run
from lff.experiments.statistics import estimate


@matplotlib.rc_context(STYLE)
def draw(panels: Mapping[str, dict[str, list[Run]]], measure: Measure) -> Picture:
    """A panel for each title: runs by the name of their row, a row with one colour in all."""
    figure = Picture(figsize=(4.8 * len(panels), 3.4), layout="constrained")
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    for axes, (title, panel) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for name, runs in panel.items():
            colour = COLOURS[names.index(name) % len(COLOURS)]
            points = [run.points(measure.key) for run in runs]
            steps = sorted(set.intersection(*map(set, points)))
            found = [estimate([p[step] for p in points]) for step in steps]
            means = measure.scale * np.array([e.mean if e else np.nan for e in found])
            half = measure.scale * np.array([e.half or 0.0 if e else 0.0 for e in found])
            axes.plot(steps, means, color=colour, lw=1.6, label=name)
            axes.fill_between(steps, means - half, means + half, color=colour, alpha=0.12, lw=0)
        axes.set_title(title, fontsize=10, color=INK, loc="left")
        axes.set(xlabel="Step", ylabel=measure.label)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(axis="y", color=RULE, lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.get_layout_engine().set(wspace=0.06)  # type: ignore[call-arg, union-attr]
    return figure
