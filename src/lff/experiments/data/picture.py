"""One picture of a file: cut out, resized, RGB. A tag that says which side is up is left alone, as by the public readers.

A JPEG decodes faster at a half, a quarter or an eighth of its size. That is done where what is left is no smaller than needed.
"""

import math
from collections.abc import Callable

import numpy as np
from einops import rearrange
from jaxtyping import UInt8
from PIL import Image, UnidentifiedImageError

AREA = (0.05, 1.0)  # of the picture
ASPECT = 4 / 3  # of the crop at most, either way


def train_crop(image: Image.Image, size: int, key: int) -> Image.Image:
    """A part of the picture resized to a square, and mirrored in half of all cases: the crop of Szegedy et al., CVPR 2015.

    The part has 5 to 100 % of the area, uniformly, and an aspect of 3/4 to 4/3, uniformly in its logarithm, so that tall and
    wide are as likely.

    Args:
        image: as opened; not yet decoded, so that a JPEG can be decoded at a lower resolution.
        size: the side of the square.
        key: a 64-bit integer, the only source of randomness.
    """
    generator = np.random.default_rng(key & (2**64 - 1))
    mirrored = generator.random() < 0.5
    crop = _cut(image, _random_box(image.width, image.height, generator), size)
    return crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else crop


def centre_crop(image: Image.Image, size: int, resize: int | None = None) -> Image.Image:
    """The middle square of the picture after its short side is resized to `resize`, by default size * 256 / 224."""
    resize = round(size * 256 / 224) if resize is None else resize
    if resize < size:
        raise ValueError(f"resize must be at least size, got {resize=} and {size=}")
    short = min(image.size)
    width, height = (round(side * resize / short) for side in image.size)
    left, top = (width - size) // 2, (height - size) // 2
    # Resizing only what the crop keeps gives the same pixels.
    x, y = image.width / width, image.height / height
    right, bottom = min((left + size) * x, image.width), min((top + size) * y, image.height)
    return _cut(image, (left * x, top * y, right, bottom), size)


def rgb(image: Image.Image) -> Image.Image:
    """The picture in three channels of 8 bits; transparency is dropped."""
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"expected 8 bits a channel, got Pillow's mode {image.mode}")
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # Pillow warns about the direct way
    return image if image.mode == "RGB" else image.convert("RGB")


def read(path: str, transform: Callable[[Image.Image], Image.Image]) -> UInt8[np.ndarray, "3 height width"]:
    """The pixels of a file after `transform`, which returns RGB. A file that cannot be read raises a ValueError naming it."""
    try:
        with Image.open(path) as image:
            return rearrange(np.asarray(transform(image)), "height width rgb -> rgb height width")
    except UnidentifiedImageError:
        raise ValueError(f"cannot read the picture {path}: it is damaged or of an unknown format") from None
    except Exception as error:  # of many kinds: decoders raise what they stumble over
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise ValueError(f"cannot read the picture {path}: {reason.splitlines()[0]}") from None


def _cut(image: Image.Image, box: tuple[int | float, int | float, int | float, int | float], size: int) -> Image.Image:
    """The box (left, top, right, bottom) of the picture, as RGB, resized to a square."""
    width, height = image.size
    left, top, right, bottom = box
    needed = math.ceil(width * size / (right - left)), math.ceil(height * size / (bottom - top))
    drafted = image.draft(None, needed)  # (mode, box of the whole picture), or None where nothing changed
    scale = drafted[1][2] / width if drafted else 1.0
    scaled = (left * scale, top * scale, right * scale, bottom * scale)
    return rgb(image).resize((size, size), Image.Resampling.BILINEAR, box=scaled)


def _random_box(width: int, height: int, generator: np.random.Generator) -> tuple[int, int, int, int]:
    for _ in range(10):
        share, shape, across, down = generator.random(4).tolist()
        area = width * height * (AREA[0] + (AREA[1] - AREA[0]) * share)
        aspect = ASPECT ** (2 * shape - 1)
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(across * (width - w + 1)), int(down * (height - h + 1))
            return left, top, left + w, top + h
    # A long and narrow picture, where few boxes fit: the largest one in its middle.
    w, h = min(width, math.ceil(height * ASPECT)), min(height, math.ceil(width * ASPECT))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h
