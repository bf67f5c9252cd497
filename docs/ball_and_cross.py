"""Draws docs/ball-and-cross.png: how similar every position is to the centre, for sines and for Fourier features.

python docs/ball_and_cross.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes

import lff

SIZE, DEPTH, SEED = 64, 768, 0


@torch.no_grad()
def similarity(encode: lff.Encoding) -> torch.Tensor:
    """The dot product of the centre's encoding with every other's, from 0 at its least to 1 at the centre: [SIZE, SIZE]."""
    encoded = encode(lff.grid((SIZE, SIZE)))
    dots = encoded @ encoded[SIZE // 2, SIZE // 2]
    return (dots - dots.min()) / (dots.max() - dots.min())


def draw(axes: Axes, encode: lff.Encoding, title: str) -> None:
    axes.imshow(similarity(encode), cmap="magma", vmin=0, vmax=1)
    axes.set_title(title, fontsize=12, pad=8)
    axes.set_xticks([])
    axes.set_yticks([])


def main() -> None:
    torch.manual_seed(SEED)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.9), layout="constrained")
    draw(left, lff.Sine(2, DEPTH), "concatenated sines: a cross")
    draw(right, lff.FourierFeatures(2, DEPTH, gamma=8.0), "learnable Fourier features: a ball")
    figure.savefig(Path(__file__).with_name("ball-and-cross.png"), dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
