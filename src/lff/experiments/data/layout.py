"""Which pictures a folder holds: the layouts of ImageNet and of Tiny-ImageNet.

ImageNet has train/<class>/*.JPEG and val/<class>/*.JPEG. Tiny-ImageNet has train/<class>/images/*.JPEG and val/images/*.JPEG,
with a line for each of the latter in val/val_annotations.txt: the name, a tab, the class.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor

from lff import arguments

ENDINGS = (".bmp", ".jpeg", ".jpg", ".png", ".webp")
EXPECTED = "train/<class>/*.JPEG and val/<class>/*.JPEG"


@dataclass(frozen=True, eq=False)
class Listing:
    """The pictures of a split, sorted by class, then name; `classes[label]` is the name of a label.

    Paths are strings, since a million of Python's path objects fill a gigabyte.
    """

    paths: tuple[str, ...]
    labels: Int64[Tensor, "n"]
    classes: tuple[str, ...]


def listing(root: str | Path, split: str) -> Listing:
    """The pictures of `split`, "train" or "val", with labels in the order of the sorted names of the training classes.

    Raises a ValueError that names the path where a folder is missing or holds no classes, a class has no pictures, a
    validation class is no training class, or the annotations cannot be read.
    """
    arguments.choice("split", split, ("train", "val"))
    root = Path(root)
    for folder in (root, root / "train", root / split):
        if not folder.is_dir():
            raise ValueError(f"no folder {folder}: expected a folder of pictures, {EXPECTED} in {root}")
    classes = _folders(root / "train")
    if not classes:
        raise ValueError(f"no class folders in {root / 'train'}: expected {EXPECTED} in {root}")
    flat = root / split / "images"
    if split == "val" and "images" not in classes and flat.is_dir() and _pictures(flat):
        found = _annotated(flat, root / split / "val_annotations.txt", classes)
    else:
        found = {name: _of_class(root / split / name) for name in _folders(root / split)}
    _compare(root, split, classes, found)
    paths = [path for name in classes for path in found[name]]
    counts = torch.tensor([len(found[name]) for name in classes])
    return Listing(tuple(paths), torch.arange(len(classes)).repeat_interleave(counts), classes)


def _compare(root: Path, split: str, classes: tuple[str, ...], found: dict[str, list[str]]) -> None:
    if unknown := sorted(found.keys() - set(classes)):
        raise ValueError(f"class {unknown[0]} is in {root / split} but not in {root / 'train'}, whose classes decide the labels")
    if empty := [name for name in classes if not found.get(name)]:
        more = f" (and {len(empty) - 1} more classes)" if len(empty) > 1 else ""
        raise ValueError(
            f"no pictures of class {empty[0]}{more} in {root / split}: expected some of each training class,\n"
            f"files that end in {', '.join(ENDINGS)}"
        )


def _folders(folder: Path) -> tuple[str, ...]:
    with os.scandir(folder) as entries:
        return tuple(sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")))


def _of_class(folder: Path) -> list[str]:
    inner = folder / "images"
    return _pictures(inner if inner.is_dir() else folder)


def _pictures(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:  # other files lie beside the pictures: boxes, thumbnails
        names = [entry.name for entry in entries]
    return sorted(os.path.join(folder, name) for name in names if name.lower().endswith(ENDINGS) and not name.startswith("."))


def _annotated(flat: Path, annotations: Path, classes: tuple[str, ...]) -> dict[str, list[str]]:
    """The pictures of one folder, by the class that their line names."""
    try:
        lines = annotations.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ValueError(
            f"cannot read {annotations}: {reason}\nexpected a line for each picture in {flat}: its name, a tab, its class"
        ) from None
    found: dict[str, list[str]] = {}
    left = {os.path.basename(path): path for path in _pictures(flat)}
    for number, line in enumerate(lines, 1):
        name, *rest = line.split("\t")
        if not line.strip():
            continue
        if not rest:
            raise ValueError(f"{annotations}, line {number}: expected a picture's name, a tab, its class; got {line[:80]!r}")
        if name not in left:
            raise ValueError(f"{annotations}, line {number}: no picture {name} in {flat}, or named twice")
        if rest[0] not in classes:
            raise ValueError(f"{annotations}, line {number}: class {rest[0]} is not among the training classes")
        found.setdefault(rest[0], []).append(left.pop(name))
    if left:
        raise ValueError(f"{annotations} has no line for {min(left)}, which is in {flat}")
    return {name: sorted(paths) for name, paths in found.items()}
