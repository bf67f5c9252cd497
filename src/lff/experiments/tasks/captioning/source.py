"""The screens of a run: those inside the package, a folder of screen annotations, or Widget Captioning's own folder."""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

import lff
from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import annotations, widgets
from lff.experiments.tasks.captioning.screens import Screen, Split, Tally, existing, from_plain, plain

SIDE = 64  # pixels of a widget's picture


class Source(NamedTuple):
    """What is read: screens with at least one target, the types that elements may have, pictures of the targets.

    `pictures` has a tensor for each split, [targets, 64, 64], or is empty where there are no screenshots.
    """

    split: Split
    types: tuple[str, ...]
    pictures: tuple[UInt8[Tensor, "widgets 64 64"], ...]
    #: What was wrong, a line a kind.
    problems: tuple[str, ...]


def read(root: Path | None, *, pixels: bool, own_text: bool, cache: Path | None = None) -> Source:
    """Reads a data set; Widget Captioning's own is kept in `cache` once it was read, since that takes long.

    Args:
        root: a folder with widget_captions.csv, or one with train.jsonl, dev.jsonl and test.jsonl; None for the package's.
        pixels: cut the targets out of the screenshots.
        own_text: see `widgets.folder`.
        cache: a folder.
    """
    tally = Tally()
    if root is not None and (existing(root) / widgets.CSV).exists():
        return _widgets(root, pixels=pixels, own_text=own_text, cache=cache)
    if pixels:
        raise Problem("--pixels wants screenshots, which only Widget Captioning's folder has: give --no-pixels")
    split = annotations.embedded(tally) if root is None else annotations.folder(root, tally)
    return Source(_with_targets(split, tally), annotations.TYPES, (), tuple(tally.lines()))


def _widgets(root: Path, *, pixels: bool, own_text: bool, cache: Path | None) -> Source:
    kept = None if cache is None else cache / f"widgets-{_key(root, pixels, own_text)}.pt"
    if kept is not None and kept.exists():
        state = torch.load(kept, weights_only=True)
        split = Split(*(from_plain(screens) for screens in state["split"]))
        return Source(split, widgets.TYPES, tuple(state["pictures"]), tuple(state["problems"]))
    tally = Tally()
    split = widgets.folder(root, tally, own_text=own_text)
    if pixels:
        split = Split(*([screen for screen in screens if _shown(screen, tally)] for screens in split))
    split = _with_targets(split, tally)
    pictures = tuple(_pictures(screens) for screens in split) if pixels else ()
    source = Source(split, widgets.TYPES, pictures, tuple(tally.lines()))
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.part")
        torch.save(
            {"split": [plain(s) for s in split], "pictures": list(pictures), "problems": list(source.problems)},
            part,
        )
        part.replace(kept)
    return source


def _with_targets(split: Split, tally: Tally) -> Split:
    found = []
    for name, screens in zip(Split._fields, split, strict=True):
        kept = [screen for screen in screens if screen.targets]
        for screen in screens:
            if not screen.targets:
                tally.note("screens with nothing to caption, left out", f"screen {screen.name} of {name}")
        if not kept:
            raise Problem(f"there is no screen with captions for {name}. {' '.join(tally.lines())}")
        found.append(kept)
    return Split(*found)


def _key(root: Path, pixels: bool, own_text: bool) -> str:
    """A digest of everything that decides what is read."""
    digest = hashlib.sha256(f"{lff.__version__} {pixels} {own_text}\n".encode())
    files = [root / widgets.CSV, *sorted((root / "split").glob("*.txt")), *sorted((root / widgets.SCREENS).glob("*"))]
    for file in files:
        stat = file.stat()
        digest.update(f"{os.path.abspath(file)}\0{stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _shown(screen: Screen, tally: Tally) -> bool:
    """Whether the screenshot is there; whether it can be decoded shows when it is."""
    if Path(screen.picture).exists():
        return True
    tally.note("screens without a screenshot, left out", screen.picture)
    return False


def _pictures(screens: list[Screen]) -> UInt8[Tensor, "widgets 64 64"]:
    return torch.cat([torch.from_numpy(crops(screen)) for screen in screens])


def crops(screen: Screen) -> UInt8[np.ndarray, "targets 64 64"]:
    """The targets of a screen as grey pictures of 64 x 64; a screenshot that cannot be decoded is named."""
    try:
        with Image.open(screen.picture) as opened:
            whole = opened.convert("L")
    except (OSError, SyntaxError) as error:
        raise ValueError(f"cannot read the screenshot {screen.picture}: {error}") from error
    found = []
    for number in screen.targets:
        top, left, bottom, right = screen.elements[number].sides
        x1, y1 = int(left * whole.width), int(top * whole.height)
        box = (x1, y1, max(x1 + 1, round(right * whole.width)), max(y1 + 1, round(bottom * whole.height)))
        found.append(np.asarray(whole.crop(box).resize((SIDE, SIDE))))
    return np.stack(found)
