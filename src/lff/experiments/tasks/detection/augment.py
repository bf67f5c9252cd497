"""DETR's augmentation with torchvision's v2 transforms: a mirror image or not, a part or the whole, one of several sizes."""

from typing import NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torchvision import tv_tensors  # type: ignore[import-untyped]
from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]

from lff.experiments.data import uniforms
from lff.experiments.data.annotated import Objects
from lff.experiments.tasks.detection.batch import Sample

Each = TypeVar("Each")
DRAWS = 8  # random numbers that a picture takes
FIRST = (0.5, 0.625, 0.75)  # short sides before a part is cut out, over the largest size: 400, 500, 600 of 800
PART = (0.48, 0.75)  # sides of the part, over the largest size: 384 to 600


class Recipe(NamedTuple):
    """What may be done to a picture."""

    sizes: tuple[int, ...]
    longest: int
    #: The size that those of parts are relative to.
    largest: int
    crop: bool
    flip: bool


def fitted(height: int, width: int, size: int, longest: int) -> tuple[int, int]:
    """(height, width) of a picture whose short side is to have `size`, and the long one `longest` at most."""
    factor = min(size / min(height, width), longest / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def augmented(pixels: UInt8[np.ndarray, "3 height width"], objects: Objects, recipe: Recipe, key: int) -> Sample:
    """One picture as it is trained on, decided by the key alone. Boxes of which nothing is left are left out."""
    draws = uniforms(torch.tensor([key]), DRAWS)[0]
    image: Tensor = tv_tensors.Image(torch.from_numpy(pixels))
    size = (image.shape[-2], image.shape[-1])
    boxes: Tensor = tv_tensors.BoundingBoxes(torch.from_numpy(objects.boxes), format="XYXY", canvas_size=size)
    if recipe.flip and draws[0] < 0.5:
        image, boxes = functional.horizontal_flip(image), functional.horizontal_flip(boxes)
    if recipe.crop and draws[1] < 0.5:
        first = round(chosen(FIRST, draws[2]) * recipe.largest)
        image, boxes = _resized(image, boxes, first, recipe.longest)
        place = _part(image.shape[-2], image.shape[-1], recipe.largest, draws[3:7])
        image, boxes = functional.crop(image, *place), functional.crop(boxes, *place)
    image, boxes = _resized(image, boxes, chosen(recipe.sizes, draws[7]), recipe.longest)
    boxes = functional.clamp_bounding_boxes(boxes)
    boxes, real = functional.sanitize_bounding_boxes(boxes, min_size=1e-3, min_area=0.0)
    return Sample(image.as_subclass(Tensor), boxes.as_subclass(Tensor), torch.from_numpy(objects.labels)[real])


def resized(
    pixels: UInt8[np.ndarray, "3 height width"], size: int, longest: int, *, flip: bool = False
) -> UInt8[Tensor, "3 h w"]:
    """A picture at one size, as it is evaluated."""
    image = torch.from_numpy(np.ascontiguousarray(pixels))
    image = functional.horizontal_flip(image) if flip else image
    made: Tensor = functional.resize(image, list(fitted(image.shape[1], image.shape[2], size, longest)), antialias=True)
    return made


def chosen(options: tuple[Each, ...], draw: float) -> Each:
    """One of several, each as likely."""
    return options[int(draw * len(options))]


def _resized(image: Tensor, boxes: Tensor, size: int, longest: int) -> tuple[Tensor, Tensor]:
    to = list(fitted(image.shape[-2], image.shape[-1], size, longest))
    return functional.resize(image, to, antialias=True), functional.resize(boxes, to)


def _part(height: int, width: int, largest: int, draws: Float[np.ndarray, "4"]) -> tuple[int, int, int, int]:
    """(top, left, height, width) of what is cut out."""
    low, high = (round(share * largest) for share in PART)

    def side(whole: int, draw: float) -> int:
        least, most = min(low, whole), min(high, whole)
        return least + int(draw * (most - least + 1))

    tall, wide = side(height, draws[0]), side(width, draws[1])
    return int(draws[2] * (height - tall + 1)), int(draws[3] * (width - wide + 1)), tall, wide
