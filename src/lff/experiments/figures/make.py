"""Draws the figures that some runs allow, and lists the others with the command that would make their runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import lff
from lff import analysis
from lff.analysis import draw
from lff.encodings.encoding import Encoding
from lff.experiments.figures import curves
from lff.experiments.figures.paper import FIGURES, PaperFigure
from lff.experiments.figures.sources import Sources, boxes, encodings, places, table_of
from lff.experiments.folder import writing
from lff.experiments.methods import slug
from lff.experiments.records import Run

DPI = 130


@dataclass(frozen=True)
class Made:
    """A figure of the paper, or a picture beyond it: the file and what it was made from; or no file and what is missing."""

    name: str
    shows: str
    file: Path | None
    says: str


class Missing(Exception):
    """Runs that a figure needs and the folders do not have."""


@dataclass(frozen=True)
class Maker:
    """Draws each kind of figure; raises `Missing` with what it lacks."""

    sources: Sources
    table: Path | None
    screens: Path | None

    def matrix(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figure 1."""
        if self.table is not None:
            return _matrix(table_of(self.table)), f"the table of {self.table.name}"
        run = self._kept(figure)
        return _matrix(encodings(run)["Trained"], run), f"{_said(run)}, cells in raster order"

    def ball_and_cross(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figure 2, which needs no run."""
        del figure
        torch.manual_seed(0)
        at, grid = torch.tensor([[32.0, 32.0]]), lff.grid((64, 64))
        both = {"Sine-2D": lff.Sine(2, 768), "Fourier features": lff.FourierFeatures(2, 768, gamma=8.0)}
        found = torch.cat([analysis.similarity(encode, grid, at) for encode in both.values()])
        return draw.maps(found, at.repeat(2, 1), names=tuple(both)), "64x64, depth 768, gamma 8, seed 0, no training"

    def curves(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figures 3 and 14."""
        found = {row: self.sources.runs(figure.task, row) for row in figure.rows}
        lacking = [str(row) for row, runs in found.items() if not runs]
        if len(found) - len(lacking) < 2 or not found[figure.rows[0]]:
            raise Missing(f"runs of {figure.task} with {', '.join(lacking)}")
        comparison = next(c for c in self.sources.task(figure.task) if found[figure.rows[0]][0] in c.runs)
        panels = {
            title: {str(row): found[row] for row in panel if found[row]}
            for title, panel in zip(figure.titles, figure.panels, strict=True)
        }
        said = f"{comparison.folder.name}, {len(found[figure.rows[0]])} seeds"
        return curves.draw(panels, comparison.measures[0]), f"{said}; without {', '.join(lacking)}" if lacking else said

    def maps(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figures 5 to 12 and 15."""
        run = self._kept(figure)
        return _maps(run), _said(run)

    def spectrum(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figure 13."""
        plain, regular = (self.sources.kept(figure.task, row) for row in figure.rows)
        if plain is None or regular is None:
            raise Missing(f"runs of {figure.task} with and without the KL loss that kept their encodings")
        found = encodings(plain) | {"Trained with the KL loss": encodings(regular)["Trained"]}
        return draw.spectra({title: analysis.spectrum(encode) for title, encode in found.items()}), _said(plain)

    def positions(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figure 4."""
        del figure
        train, _, _ = boxes(self.screens)
        return draw.positions(train), f"{len(train):,} boxes of {self._whose()}"

    def hull(self, figure: PaperFigure) -> tuple[draw.Picture, str]:
        """Figure 16."""
        del figure
        _, unseen, found = boxes(self.screens)
        return draw.hull(found), f"{int(found.inside.sum()):,} of {len(unseen):,} unseen boxes are in the hull of {self._whose()}"

    def _kept(self, figure: PaperFigure) -> Run:
        run = self.sources.kept(figure.task, figure.rows[0])
        if run is None:
            whose = f"of {figure.task} " if figure.task else ""
            raise Missing(f"a finished run {whose}with {figure.rows[0]} that kept its encoding")
        return run

    def _whose(self) -> str:
        return f"the training screens of {self.screens or 'the package'}"


def write(folders: Sequence[Path], out: Path, *, table: Path | None = None, screens: Path | None = None) -> list[Made]:
    """Writes figure-NN.png for every figure of the paper that the runs allow, and pictures of all kept encodings beside them.

    Args:
        folders: each the --out of `lff compare`; none gives the figures that need no runs.
        out: where the pictures go; made if it is not there.
        table: a model's safetensors with a table of positions in a row, for Figure 1.
        screens: a captioning data set, for Figures 4 and 16; None for the one that ships with the package.
    """
    sources = Sources(folders)
    maker = Maker(sources, table, screens)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    made = [_paper(maker, figure, out) for figure in FIGURES]
    return [*made, *_beyond(sources, out)]


def _paper(maker: Maker, figure: PaperFigure, out: Path) -> Made:
    make: Callable[[PaperFigure], tuple[draw.Picture, str]] = getattr(maker, figure.kind)
    try:
        picture, says = make(figure)
    except Missing as missing:
        return Made(f"Figure {figure.number}", figure.shows, None, f"needs {missing}: {figure.command}")
    return Made(f"Figure {figure.number}", figure.shows, _save(picture, out / f"figure-{figure.number:02d}.png"), says)


def _beyond(sources: Sources, out: Path) -> list[Made]:
    """The same kinds of pictures for the runs that the paper has no figure of: similarity, and W_r where there is one."""
    made = []
    maps = [sources.kept(figure.task, figure.rows[0]) for figure in FIGURES if figure.kind == "maps"]
    drawn = {run.folder for run in maps if run is not None}
    for comparison in sources.comparisons:
        task = str(comparison.about["task"])
        shown = {method: next((r for r in comparison.finished(method) if encodings(r)), None) for method in comparison.methods}
        for run in filter(None, shown.values()):
            name = f"{comparison.folder.resolve().name}-{slug(run.method, run.seed)}"
            found = encodings(run)
            first = next(iter(found.values()))
            if run.folder not in drawn and first.coords == 2 and not isinstance(first, lff.Zero):
                file = _save(_maps(run), out / f"similarity-{name}.png")
                made.append(Made("Beyond", f"Similarity in {task}: {run.method}", file, _said(run)))
            if all(isinstance(analysis.features(encode), lff.FourierFeatures) for encode in found.values()):
                picture = draw.spectra({title: analysis.spectrum(encode) for title, encode in found.items()})
                file = _save(picture, out / f"spectrum-{name}.png")
                made.append(Made("Beyond", f"W_r in {task}: {run.method}", file, _said(run)))
    return made


def listing(made: Sequence[Made]) -> str:
    """A line for each: its number, what it shows, its file and source, or what is missing."""
    return "\n".join(f"{m.name}: {m.shows}\n    {f'{m.file} ({m.says})' if m.file else m.says}" for m in made)


def _maps(run: Run) -> draw.Picture:
    rows = {}
    for title, encode in encodings(run).items():
        part = analysis.features(encode)
        grid, at, cells = places(run)
        rows[title] = analysis.similarity(part, grid, at)
    return draw.maps(rows, cells)


def _matrix(encoding: Encoding, run: Run | None = None) -> draw.Picture:
    if run is None or encoding.coords == 1:
        grid = lff.grid(encoding.arguments["extent"])
        return draw.matrix(analysis.similarity(encoding, grid, grid))
    grid = places(run)[0].flatten(0, 1)
    return draw.matrix(analysis.similarity(encoding, grid, grid), what="Cell")


def _said(run: Run) -> str:
    return f"{run.folder.parent.parent.name}: {run.method}, seed {run.seed}"


def _save(picture: draw.Picture, file: Path) -> Path:
    with writing(file):
        picture.savefig(file, dpi=DPI, metadata={"Software": None})
    return file
