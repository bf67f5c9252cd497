"""Image folders that the tests of the data read: a few smooth pictures in ImageNet's layout."""

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("n01", "n02", "n03")


def smooth(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture without sharp edges, which resizing and JPEG keep."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def imagenet(root: Path, *, train: int = 4, val: int = 2, size: tuple[int, int] = (20, 16)) -> Path:
    """A folder in ImageNet's layout, with some files that are no pictures."""
    for split, count in (("train", train), ("val", val)):
        for number, name in enumerate(CLASSES):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                smooth(*size, seed=100 * number + 10 * i + len(split)).save(root / split / name / f"{name}_{i}.JPEG", quality=95)
            (root / split / name / "notes.txt").write_text("no picture")
            (root / split / name / "._hidden.JPEG").write_text("no picture")
    return root
