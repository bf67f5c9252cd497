"""A screen as both data sets are read into it, and what was wrong with them, counted."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

GRID = 100  # values of a coordinate: 0 to 99, as in the public code
EXAMPLES = 3
Sides = tuple[float, float, float, float]


class Element(NamedTuple):
    """A rectangle of a screen. `sides` are (top, left, bottom, right) in parts of the screen's height and width."""

    type: str
    sides: Sides
    text: tuple[str, ...] = ()
    resource: tuple[str, ...] = ()
    clickable: bool = False
    #: Depth, place in pre-order and in post-order, each from 1 on.
    dom: tuple[int, int, int] = (0, 0, 0)
    #: What it is to be called, as words; none for context.
    captions: tuple[tuple[str, ...], ...] = ()
    #: As its file names it.
    name: str = ""

    @property
    def box(self) -> tuple[int, ...]:
        """The sides as whole numbers from 0 to 99, cut off as in the public code."""
        return tuple(int(side * (GRID - 1)) for side in self.sides)


class Screen(NamedTuple):
    """All elements of a screen; `picture` is its screenshot where there is one."""

    name: str
    elements: tuple[Element, ...]
    picture: str = ""

    @property
    def targets(self) -> list[int]:
        """The elements with captions."""
        return [number for number, element in enumerate(self.elements) if element.captions]


class Split(NamedTuple):
    """Screens by what they are for."""

    train: list[Screen]
    dev: list[Screen]
    test: list[Screen]


class Tally:
    """Counts what is wrong with data and keeps a few examples; it is told once, at the start."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, list[str]]] = {}

    def note(self, what: str, where: object) -> None:
        """One more of a kind."""
        count, examples = self.found.get(what, (0, []))
        self.found[what] = (count + 1, [*examples, str(where)] if len(examples) < EXAMPLES else examples)

    def lines(self) -> list[str]:
        """A line for each kind."""
        return [
            f"{what}: {count:,}, for instance {'; '.join(examples)}" for what, (count, examples) in sorted(self.found.items())
        ]


def clipped(sides: Iterable[float], tally: Tally, where: object) -> Sides | None:
    """(top, left, bottom, right) inside of the screen; None for a box that is empty, inverted or wholly outside."""
    given = top, left, bottom, right = _four(sides)
    inside = _four(min(max(side, 0.0), 1.0) for side in given)
    if not (top < bottom and left < right):
        tally.note("boxes that are empty or inverted, their elements left out", where)
        return None
    if not (inside[0] < inside[2] and inside[1] < inside[3]):
        tally.note("boxes wholly outside of the screen, their elements left out", where)
        return None
    if inside != given:
        tally.note("boxes that leave the screen, clipped to it", where)
    return inside


def _four(sides: Iterable[float]) -> Sides:
    top, left, bottom, right = map(float, sides)
    return top, left, bottom, right


def depth_first(parents: list[int]) -> list[tuple[int, int, int]]:
    """Depth, place in pre-order and in post-order of every node of a forest, each from 1 on; a root's parent is -1."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    depth, before, after = ([0] * len(parents) for _ in range(3))
    stack: list[tuple[int, bool]] = [(root, False) for root in reversed(children.get(-1, []))]
    entered = left = 0
    while stack:
        node, done = stack.pop()
        if done:
            left += 1
            after[node] = left
            continue
        entered += 1
        before[node], depth[node] = entered, 1 if parents[node] < 0 else depth[parents[node]] + 1
        stack.append((node, True))
        stack += [(child, False) for child in reversed(children.get(node, []))]
    return list(zip(depth, before, after, strict=True))


def plain(screens: list[Screen]) -> list[Any]:
    """As nested tuples, which `torch.save` keeps without naming a class."""
    return [(screen.name, tuple(tuple(element) for element in screen.elements), screen.picture) for screen in screens]


def from_plain(kept: list[Any]) -> list[Screen]:
    """What `plain` gave, as screens."""
    return [Screen(name, tuple(Element(*element) for element in elements), picture) for name, elements, picture in kept]


def existing(folder: Path) -> Path:
    """A folder of the user's."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    return folder
