"""Reads screen annotations of Rico's screens: JSON lines, inside the package and in folders of one's own.

A target's text is its caption. It is hidden from the input, and so is the text of every icon and picture, since these are
descriptions too, and that of an ancestor or descendant which repeats a target's.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning.screens import Element, Screen, Split, Tally, clipped, depth_first
from lff.experiments.tasks.captioning.words import caption_words, text_words

EXTENT = 999  # the largest coordinate
#: All types of the published file.
TYPES = (
    "BUTTON",
    "CHECKBOX",
    "IMAGE",
    "KEYBOARD",
    "LABEL",
    "LIST_ITEM",
    "MAP",
    "NAVIGATION_BAR",
    "PAGER_INDICATOR",
    "PICTOGRAM",
    "RADIO_BUTTON",
    "SWITCH",
    "TEXT",
    "TEXT_INPUT",
    "TOOLBAR",
    "UNKNOWN",
)
#: What is captioned: their texts describe what is to be seen.
DESCRIBED = ("IMAGE", "PICTOGRAM")


def embedded(tally: Tally) -> Split:
    """The screens inside the package."""
    home = resources.files("lff.experiments.data").joinpath("rico")

    def lines(split: str) -> Iterator[str]:
        with home.joinpath(f"{split}.jsonl.gz").open("rb") as packed:
            yield from gzip.decompress(packed.read()).decode().splitlines()

    return Split(*(list(_screens(f"{split}.jsonl.gz", lines(split), tally)) for split in Split._fields))


def folder(root: Path, tally: Tally) -> Split:
    """Screens of a folder with train.jsonl, dev.jsonl and test.jsonl."""

    def lines(split: str) -> list[str]:
        try:
            return (root / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Problem(f"cannot read {root / f'{split}.jsonl'}: {error}") from error

    return Split(*(list(_screens(str(root / f"{split}.jsonl"), lines(split), tally)) for split in Split._fields))


def _screens(file: str, lines: Iterable[str], tally: Tally) -> Iterator[Screen]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
            found = screen(content, tally)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            tally.note("screens that are no JSON of the right form, left out", f"{file}, line {number} ({error!r})")
            continue
        yield found


def screen(content: dict[str, Any], tally: Tally) -> Screen:
    """A screen of a line of JSON; what is not of the form raises."""
    name, rows = str(content["screen_id"]), content["elements"]
    parents = [_parent(row[6], number) for number, row in enumerate(rows)]
    targets = _targets(name, content.get("targets"), rows, tally)
    captions = {number: caption_words(str(rows[number][1])) for number in targets}
    hidden = _hidden(rows, parents, captions)
    elements = []
    for number, (row, dom) in enumerate(zip(rows, depth_first(parents), strict=True)):
        kind, text, left, top, right, bottom = row[:6]
        sides = clipped((side / EXTENT for side in (top, left, bottom, right)), tally, f"screen {name}, element {number}")
        if sides is None:
            continue
        if kind not in TYPES:
            tally.note("elements of unknown type, taken as UNKNOWN", f"{kind!r} of screen {name}")
        elements.append(
            Element(
                type=kind if kind in TYPES else "UNKNOWN",
                sides=sides,
                text=() if number in hidden else text_words(str(text)),
                dom=dom,
                captions=(captions[number],) if captions.get(number) else (),
                name=str(number),
            )
        )
    return Screen(name, tuple(elements))


def _targets(name: str, given: list[int] | None, rows: list[Any], tally: Tally) -> list[int]:
    """The numbers of the elements to caption; without a list, every icon and picture."""
    if given is None:
        return [number for number, row in enumerate(rows) if row[0] in DESCRIBED]
    there = []
    for number in given:
        if not 0 <= number < len(rows):
            tally.note("captions of elements that are not on their screen, left out", f"screen {name}, element {number}")
        elif not caption_words(str(rows[number][1])):
            tally.note("empty captions, left out", f"screen {name}, element {number}")
        else:
            there.append(number)
    return there


def _hidden(rows: list[Any], parents: list[int], captions: dict[int, tuple[str, ...]]) -> set[int]:
    """Elements whose text must not be seen."""
    hidden = {number for number, row in enumerate(rows) if row[0] in DESCRIBED} | set(captions)
    for number in range(len(rows)):
        above = number
        while (above := parents[above]) >= 0:  # every pair of an element and an ancestor
            for target, other in ((number, above), (above, number)):
                if captions.get(target) and _repeats(str(rows[other][1]), captions[target]):
                    hidden.add(other)
    return hidden


def _repeats(text: str, caption: tuple[str, ...]) -> bool:
    return f" {' '.join(caption)} " in f" {' '.join(caption_words(text))} "


def _parent(given: int, number: int) -> int:
    """Parents come before their children in the list, so that a tree has no rings."""
    if not -1 <= given < number:
        raise ValueError(f"the parent of element {number} must come before it or be -1, got {given}")
    return given
