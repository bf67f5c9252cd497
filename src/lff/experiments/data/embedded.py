"""The data set inside the package: a part of Fashion-MNIST, described in fashion/README.md."""

from importlib import resources

import numpy as np
import torch

from lff import arguments
from lff.experiments.data.images import Images

CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def embedded(split: str) -> Images:
    """Grey 28 x 28 pictures of clothes in 10 classes: 10,000 for "train", 2,000 for "test", as many of each class.

    They stand in the order of the official files, so the classes are mixed.
    """
    arguments.choice("split", split, ("train", "test"))
    file = resources.files("lff.experiments.data").joinpath("fashion/fashion.npz")
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        pixels, labels = arrays[f"{split}_pixels"], arrays[f"{split}_labels"]
    return Images(torch.from_numpy(pixels)[:, None], torch.from_numpy(labels).long(), CLASSES)
