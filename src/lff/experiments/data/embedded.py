"""The data set inside the package: a part of Fashion-MNIST, described in fashion/README.md."""

from importlib import resources

import numpy as np
import torch
from torch.nn import functional

from lff import arguments
from lff.experiments.data.images import Images

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def embedded(split: str, size: int = 28) -> Images:
    """Grey 28 x 28 pictures of clothes in 10 classes: 10,000 for "train", 2,000 for "test", as many of each class.

    They stand in the order of the official files, so the classes are mixed.

    Args:
        split: "train" or "test".
        size: height and width to resize to.
    """
    arguments.choice("split", split, ("train", "test"))
    file = resources.files("lff.experiments.data").joinpath("fashion/fashion.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        pixels, labels = arrays[f"{split}_pixels"], arrays[f"{split}_labels"]
    there = torch.from_numpy(pixels)[:, None]
    if size != there.shape[-1]:
        resized = functional.interpolate(there.float(), (arguments.whole("size", size),) * 2, mode="bilinear", antialias=True)
        there = resized.round().to(torch.uint8)
    return Images(there, torch.from_numpy(labels).long(), CLASSES)
