"""Reads Widget Captioning in its public layout, beside Rico's screens:

    ROOT/widget_captions.csv            screenId, nodeId, captions (joined by |)
    ROOT/split/{train,dev,test}.txt     a screen id a line
    ROOT/combined/ID.json, ID.jpg       Rico's view hierarchy and screenshot

A node's id is the way to it from the root, "0", by the numbers of children: "0.1.0". Captions come cut into words.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning.screens import Element, Screen, Split, Tally, clipped, depth_first
from lff.experiments.tasks.captioning.words import caption_words, resource_words, text_words

HEIGHT, WIDTH = 2560, 1440  # of every view hierarchy, whatever its screenshot measures
#: The classes that the public code knows; a node of another has the type of its nearest ancestor class that is here.
TYPES = (
    "BUTTON",
    "CHECKBOX",
    "COMPOUNDBUTTON",
    "FLOATINGACTIONBUTTON",
    "IMAGEBUTTON",
    "IMAGEVIEW",
    "RADIOBUTTON",
    "SWITCH",
    "TOGGLEBUTTON",
    "VIEW",
    "UNKNOWN",
)
MOST_CAPTIONS = 4
CSV, SCREENS = "widget_captions.csv", "combined"

Captions = dict[str, dict[str, tuple[tuple[str, ...], ...]]]


def folder(root: Path, tally: Tally, *, own_text: bool) -> Split:
    """The screens of the lists that have captions and a view hierarchy.

    Args:
        root: the folder with widget_captions.csv.
        tally: told of everything that is left out.
        own_text: let the model see the developer's text of a widget that it is to caption.
    """
    captions = read_captions(root / CSV, tally)
    return Split(*(_split(root, split, captions, tally, own_text) for split in Split._fields))


def read_captions(file: Path, tally: Tally) -> Captions:
    """Captions by screen and node."""
    found: Captions = {}
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            if not {"screenId", "nodeId", "captions"} <= set(rows.fieldnames or ()):
                raise Problem(f"{file} must begin with the columns screenId, nodeId and captions, got {rows.fieldnames}")
            for row in rows:
                where = f"screen {row['screenId']}, node {row['nodeId']}"
                words = [caption_words(caption) for caption in (row["captions"] or "").split("|")]
                for _ in range(sum(not each for each in words)):
                    tally.note("empty captions, left out", where)
                kept = tuple(each for each in words if each)[:MOST_CAPTIONS]
                if kept:
                    found.setdefault(row["screenId"], {})[row["nodeId"]] = kept
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Problem(f"cannot read {file}: {error}") from error
    return found


def _split(root: Path, split: str, captions: Captions, tally: Tally, own_text: bool) -> list[Screen]:
    listed = root / "split" / f"{split}.txt"
    try:
        names = listed.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"cannot read {listed}: {error}") from error
    found = []
    for name in names:
        file, picture = root / SCREENS / f"{name}.json", root / SCREENS / f"{name}.jpg"
        if name not in captions:
            tally.note("screens without captions, left out", f"screen {name} of {split}")
            continue
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            read = screen(name, content, captions[name], tally, own_text=own_text)
        except FileNotFoundError:
            tally.note("screens without a view hierarchy, left out", file)
            continue
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            tally.note("view hierarchies that are damaged, left out", f"{file} ({error!r})")
            continue
        found.append(read._replace(picture=str(picture)))
    return found


def screen(
    name: str,
    content: dict[str, Any],
    captions: dict[str, tuple[tuple[str, ...], ...]],
    tally: Tally,
    *,
    own_text: bool,
) -> Screen:
    """A screen of a view hierarchy; what is not of the form raises."""
    nodes = list(_nodes(content["activity"]["root"]))
    parents = [parent for _, parent, _ in nodes]
    elements = []
    for (node, _, number), dom in zip(nodes, depth_first(parents), strict=True):
        left, top, right, bottom = node["bounds"]
        where = f"screen {name}, node {number}"
        sides = clipped((top / HEIGHT, left / WIDTH, bottom / HEIGHT, right / WIDTH), tally, where)
        if sides is None:
            continue
        kind, mine = _type(node), captions.get(number, ())
        if kind == "UNKNOWN":
            tally.note("elements of unknown type, taken as UNKNOWN", f"{node.get('class')!r} of screen {name}")
        elements.append(
            Element(
                type=kind,
                sides=sides,
                text=() if mine and not own_text else text_words(_text(node)),
                resource=resource_words(str(node.get("resource-id") or "")),
                clickable=bool(node.get("clickable")),
                dom=dom,
                captions=mine,
                name=number,
            )
        )
    for number in set(captions) - {element.name for element in elements}:
        tally.note("captions of elements that are not on their screen, left out", f"screen {name}, node {number}")
    return Screen(name, tuple(elements))


def _nodes(root: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Every node with the place of its parent and its id, in pre-order. A child may be null, and keeps its number then."""
    waiting: list[tuple[dict[str, Any], int, str]] = [(root, -1, "0")]
    place = 0
    while waiting:
        node, parent, number = waiting.pop()
        yield node, parent, number
        children = [(child, place, f"{number}.{i}") for i, child in enumerate(node.get("children") or []) if child]
        waiting += reversed(children)
        place += 1


def _type(node: dict[str, Any]) -> str:
    """Of its class, or of the first of its ancestor classes that is known."""
    names = (str(name).rpartition(".")[2].upper() for name in (node.get("class", ""), *(node.get("ancestors") or [])))
    return next((name for name in names if name in TYPES), "UNKNOWN")


def _text(node: dict[str, Any]) -> str:
    """The first of its text and its descriptions that is not empty."""
    described = node.get("content-desc") or []
    texts = [node.get("text"), *([described] if isinstance(described, str) else described)]
    return next((text for text in texts if text and text.strip()), "")
