"""`lff caption`: the captions that a finished run finds for a screen, written down and drawn on its boxes."""

import json
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from lff.experiments import finished
from lff.experiments.config import differences
from lff.experiments.folder import reading
from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import annotations, widgets
from lff.experiments.tasks.captioning import model as models
from lff.experiments.tasks.captioning.beam import search
from lff.experiments.tasks.captioning.config import CaptioningConfig
from lff.experiments.tasks.captioning.screens import Screen, Tally
from lff.experiments.tasks.captioning.source import crops
from lff.experiments.tasks.captioning.tensors import Screens
from lff.experiments.tasks.captioning.words import Vocabulary

ASKED = ("?",)  # stands where a caption is wanted


def caption(run: Path, file: Path, out: Path) -> list[tuple[str, str]]:
    """Captions the widgets of a screen, draws them, and gives each element's name with its caption.

    Args:
        run: the folder of a finished run of captioning.
        file: a screen: a line of screen annotations as a file, or a view hierarchy of Rico with its .jpg beside it.
        out: the picture to write: .png, .svg or .pdf.
    """
    config, model, vocabulary, types = load(run)
    screen = read(file, config, types)
    found = captions(model, config, vocabulary, types, screen)
    draw(screen, found, out)
    return [(screen.elements[number].name, text) for number, text in zip(screen.targets, found, strict=True)]


def load(run: Path) -> tuple[CaptioningConfig, models.Captioner, Vocabulary, list[str]]:
    """The model of a finished run, with what it needs."""
    about, row, weights, words = finished.load(run, "captioning")
    config = finished.settings(CaptioningConfig, about)
    vocabulary = Vocabulary(json.loads(words["words"]))
    model = models.build(config, row, len(vocabulary), weights["words.table"] if config.glove else None)
    model.load_state_dict(weights)
    return config, model.eval(), vocabulary, json.loads(words["types"])


def read(file: Path, config: CaptioningConfig, types: list[str]) -> Screen:
    """A screen with every widget to caption marked; which kind of file it is shows in what it holds.

    Of annotations: the targets it names, or else all icons and pictures. Of a view hierarchy: every clickable element without
    children that has no text.
    """
    tally = Tally()
    with reading(file):
        content = json.loads(file.read_text(encoding="utf-8"))
    hierarchy = isinstance(content, dict) and "activity" in content
    own = widgets.TYPES if hierarchy else annotations.TYPES
    if tuple(types) != own:
        raise Problem(f"{file} is of another data set than the run: {differences({'types': types}, {'types': list(own)})}")
    try:
        found = _hierarchy(file, content, tally, config) if hierarchy else _annotated(content, tally)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise Problem(f"{file} must be a screen annotation or a view hierarchy, got {error!r}") from error
    if not found.targets:
        raise Problem(f"{file} has nothing to caption. {' '.join(tally.lines())}".strip())
    return found


def _annotated(content: dict[str, Any], tally: Tally) -> Screen:
    screen = annotations.screen(content, tally)
    wanted = {str(number) for number in content["targets"]} if content.get("targets") else None
    return _asking(screen, [e.name in wanted if wanted is not None else e.type in annotations.DESCRIBED for e in screen.elements])


def _hierarchy(file: Path, content: dict[str, Any], tally: Tally, config: CaptioningConfig) -> Screen:
    screen = widgets.screen(file.stem, content, {}, tally, own_text=config.own_text)
    inner = {e.name.rpartition(".")[0] for e in screen.elements}
    asked = [e.clickable and not e.text and e.name not in inner for e in screen.elements]
    return _asking(screen, asked)._replace(picture=str(file.with_suffix(".jpg")))


def _asking(screen: Screen, asked: list[bool]) -> Screen:
    elements = (e._replace(captions=(ASKED,) if a else ()) for e, a in zip(screen.elements, asked, strict=True))
    return screen._replace(elements=tuple(elements))


@torch.no_grad()
def captions(
    model: models.Captioner, config: CaptioningConfig, vocabulary: Vocabulary, types: list[str], screen: Screen
) -> list[str]:
    """A caption for each target of a screen."""
    pictures = torch.from_numpy(crops(screen)) if config.pixels else None
    lengths = {"text_length": config.text_length, "caption_length": config.caption_length}
    batch = Screens([screen], vocabulary, types, pictures, **lengths).batch(torch.tensor([0]), torch.device("cpu"))
    found = search(model, model.encode(batch), length=config.caption_length, width=config.beam, penalty=config.penalty)
    return [vocabulary.text(row) for row in found.words.tolist()]


def draw(screen: Screen, found: list[str], out: Path) -> None:
    """The boxes of a screen; those with captions are numbered, and their captions stand beside it."""
    tall = max(7.0, 0.3 * len(found) + 1.0)
    figure = Figure(figsize=(tall * 0.5625 + 6.5, tall))
    axes = figure.add_axes((0.02, 0.03, tall * 0.5625 / (tall * 0.5625 + 6.5) - 0.03, 0.94))
    axes.set(xlim=(0, 9), ylim=(16, 0), xticks=[], yticks=[])  # a screen of 9 by 16
    for element in screen.elements:
        _box(axes, element.sides, "#b5b5b5", 0.8)
        if element.text:
            left, middle = 9 * element.sides[1], 8 * (element.sides[0] + element.sides[2])
            axes.text(left + 0.05, middle, " ".join(element.text)[:30], fontsize=6, color="#808080", va="center", clip_on=True)
    for place, (number, text) in enumerate(zip(screen.targets, found, strict=True), start=1):
        sides = screen.elements[number].sides
        _box(axes, sides, "#c1440e", 1.6)
        axes.text(9 * sides[3], 16 * sides[0], str(place), fontsize=8, color="#ffffff", va="center", ha="center", bbox=_LABEL)
        axes.text(1.04, 1 - (place - 0.5) * 0.3 / (0.94 * tall), f"{place}  {text}", transform=axes.transAxes, fontsize=9)
    axes.set_title(f"Screen {screen.name}", loc="left", fontsize=10)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(out, dpi=150)
    except ValueError as error:
        raise Problem(f"cannot draw {out}: {error}") from error


_LABEL = {"boxstyle": "round,pad=0.2", "facecolor": "#c1440e", "edgecolor": "none"}


def _box(axes: Any, sides: tuple[float, ...], colour: str, width: float) -> None:
    top, left, bottom, right = sides
    axes.plot(
        [9 * left, 9 * right, 9 * right, 9 * left, 9 * left],
        [16 * top, 16 * top, 16 * bottom, 16 * bottom, 16 * top],
        color=colour,
        linewidth=width,
    )
