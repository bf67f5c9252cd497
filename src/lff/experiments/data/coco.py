"""COCO's layout: `annotations/instances_<split>.json` beside a folder of pictures for each split.

What is read, and what is done with what is odd:

- Categories are numbered by the order of their ids, which may have gaps. `frequent` keeps those in the most training pictures,
  if wanted only such as are large in them.
- A box that reaches outside its picture is cut off at the border to train on. One with no area, before or after, is left out.
- Crowds (`iscrowd`) are not trained on. The evaluation is given them, and everything else, as the file has it.
- A picture without boxes is kept, if not asked otherwise: it shows that there is nothing.
- A number that is not finite, an annotation of a picture or a category that the file does not list, a picture that the file
  lists and the folder lacks: a ValueError that names it, before training.
"""

import hashlib
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from jaxtyping import UInt8

from lff.experiments.data.annotated import Annotated, Category, Objects, joined
from lff.experiments.data.picture import read, rgb

SPLITS = {"train": "train2017", "val": "val2017"}


@dataclass(frozen=True, eq=False)
class CocoPictures(Annotated):
    """Those of one split, read from their files when asked for."""

    #: As bytes, which an array keeps side by side: loaders get a copy.
    paths: np.ndarray

    def pixels(self, index: int) -> UInt8[np.ndarray, "3 height width"]:
        path = os.fsdecode(self.paths[index])
        pixels = read(path, rgb)
        height, width = (int(side) for side in self.sizes[index])
        if pixels.shape[1:] != (height, width):
            raise ValueError(f"{path} must be {width} x {height}, as its json says, got {pixels.shape[2]} x {pixels.shape[1]}")
        return pixels

    def stamp(self) -> str:
        digest = hashlib.sha256()
        for path in self.paths:
            stat = os.stat(path)
            digest.update(os.path.abspath(path) + f"\0{stat.st_size} {stat.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def coco(root: str | Path, split: str, categories: Sequence[Category] | None = None, *, empty: bool = True) -> CocoPictures:
    """The pictures of a split with their boxes.

    Args:
        root: the folder that holds annotations/ and the folders of pictures.
        split: "train" or "val".
        categories: those to keep; by default all of the file.
        empty: keep pictures that have no annotation of these categories.
    """
    file = Path(root) / "annotations" / f"instances_{SPLITS[split]}.json"
    content = _content(file)
    images = sorted(content["images"], key=lambda image: int(image["id"]))
    kept = tuple(categories) if categories is not None else tuple(_categories(content))
    truth = _checked(file, content, {int(image["id"]) for image in images})
    places = {category.id: place for place, category in enumerate(kept)}
    truth = [annotation for annotation in truth if annotation["category_id"] in places]
    by_image: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for annotation in truth:
        by_image[annotation["image_id"]].append(annotation)
    if not empty:
        images = [image for image in images if int(image["id"]) in by_image]
        if not images:
            raise ValueError(f"{file} has no picture of {', '.join(category.name for category in kept)}")
    sizes = np.array([(image["height"], image["width"]) for image in images], np.int64).reshape(-1, 2)
    objects = [_objects(by_image[int(image["id"])], places, size) for image, size in zip(images, sizes, strict=True)]
    offsets, boxes, labels = joined(objects)
    ids = np.array([image["id"] for image in images], np.int64)
    return CocoPictures(ids, sizes, kept, offsets, boxes, labels, truth, _paths(file, images))


def frequent(root: str | Path, count: int, least: float = 0.0) -> tuple[Category, ...]:
    """The categories that are in the most training pictures, in the order of their ids.

    Args:
        root: as of `coco`.
        count: how many; 0 for all.
        least: leave out those whose objects fill less of their picture, the median of them that is. Crowds do not count.
    """
    file = Path(root) / "annotations" / f"instances_{SPLITS['train']}.json"
    content = _content(file)
    area = {int(image["id"]): image["height"] * image["width"] for image in content["images"]}
    truth = _checked(file, content, set(area))
    shares: dict[int, list[float]] = defaultdict(list)
    for annotation in truth:
        if not annotation["iscrowd"]:
            _, _, width, height = annotation["bbox"]
            shares[annotation["category_id"]].append(width * height / max(1, area[annotation["image_id"]]))
    categories = _categories(content)
    large = [category for category in categories if not least or median(shares[category.id] or [0.0]) >= least]
    if not large:
        raise ValueError(f"{file} has no category whose objects fill {least} of their pictures, by the median")
    shown = Counter(category for _, category in {(a["image_id"], a["category_id"]) for a in truth})
    return tuple(sorted(sorted(large, key=lambda category: (-shown[category.id], category.id))[: count or None]))


def _content(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except FileNotFoundError:
        raise ValueError(f"there is no {file}: the folder must be laid out as COCO 2017 is") from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from None
    wanted = ("images", "annotations", "categories")
    if not isinstance(content, dict) or any(not isinstance(content.get(key), list) for key in wanted):
        raise ValueError(f"{file} must hold the lists {', '.join(wanted)}")
    return content


def _categories(content: dict[str, Any]) -> list[Category]:
    return sorted(Category(int(category["id"]), str(category["name"])) for category in content["categories"])


def _checked(file: Path, content: dict[str, Any], images: set[int]) -> list[dict[str, Any]]:
    """The annotations, after a look at each."""
    categories = {category.id for category in _categories(content)}
    found = []
    for annotation in content["annotations"]:
        which = f"{file}: annotation {annotation.get('id')!r}"
        box = annotation.get("bbox")
        if not isinstance(box, list) or len(box) != 4 or not all(isinstance(v, int | float) and math.isfinite(v) for v in box):
            raise ValueError(f"{which} must have a bbox of four finite numbers, got {box!r}")
        if annotation.get("image_id") not in images:
            raise ValueError(f"{which} is of image {annotation.get('image_id')!r}, which the file does not list")
        if annotation.get("category_id") not in categories:
            raise ValueError(f"{which} is of category {annotation.get('category_id')!r}, which the file does not list")
        area = annotation.get("area", box[2] * box[3])
        crowd = int(annotation.get("iscrowd", 0))
        found.append({**{key: annotation[key] for key in ("image_id", "category_id", "bbox")}, "area": area, "iscrowd": crowd})
    return found


def _objects(annotations: list[dict[str, Any]], places: dict[int, int], size: np.ndarray) -> Objects:
    single = [annotation for annotation in annotations if not annotation["iscrowd"]]
    boxes = np.array([annotation["bbox"] for annotation in single], np.float32).reshape(-1, 4)
    labels = np.array([places[annotation["category_id"]] for annotation in single], np.int64)
    return clipped(np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1), labels, size)


def clipped(boxes: np.ndarray, labels: np.ndarray, size: np.ndarray) -> Objects:
    """Boxes cut off at the border of a picture of (height, width); those of which nothing is left are left out."""
    height, width = size
    inside = np.clip(boxes, 0, np.array([width, height, width, height], np.float32))
    real = (inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1])
    return Objects(inside[real], labels[real])


def _paths(file: Path, images: list[dict[str, Any]]) -> np.ndarray:
    folder = file.parent.parent / file.stem.removeprefix("instances_")
    there = set(os.listdir(folder)) if folder.is_dir() else set()
    missing = [image["file_name"] for image in images if image["file_name"] not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"{file} lists pictures that are not there: {folder / missing[0]}{more}")
    return np.array([os.fsencode(folder / image["file_name"]) for image in images])
