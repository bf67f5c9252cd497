"""Draws docs/kernel-flow.png: what one program of the forward kernel keeps where."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

MEMORY, REGISTERS = "#c8d8ec", "#f6e0b8"

#: x, y, width, height, what is there, and where it is.
BOXES = {
    "x": (0.0, 2.2, 1.5, 0.9, "positions x\n128 x 3", MEMORY),
    "w_r": (0.0, 0.6, 1.5, 0.9, "W_r\n192 x 3", MEMORY),
    "r": (2.5, 1.4, 2.2, 1.1, "phases, sines, cosines\n128 x 32 at a time,\nfor all 192 frequencies", REGISTERS),
    "w_1": (2.5, 3.4, 2.2, 0.9, "W_1, with LayerNorm\n32 x 384", MEMORY),
    "z": (5.7, 1.4, 1.9, 1.1, "hidden units z,\nand the mean\n128 x 32", REGISTERS),
    "p": (8.6, 1.4, 1.9, 1.1, "GELU, LayerNorm,\ndropout: p\n128 x 32", REGISTERS),
    "w_2": (8.6, 3.4, 1.9, 0.9, "W_2, b_2\n768 x 32", MEMORY),
    "y": (11.5, 1.4, 2.1, 1.1, "outputs y\n128 x 64 at a time,\nfor all 768", REGISTERS),
    "out": (11.5, 3.4, 2.1, 0.9, "output\n1,048,576 x 768", MEMORY),
}
ARROWS = [("x", "r"), ("w_r", "r"), ("w_1", "z"), ("r", "z"), ("z", "p"), ("p", "y"), ("w_2", "y"), ("y", "out")]


def main() -> None:
    figure, axes = plt.subplots(figsize=(15, 5.2))
    for x, y, width, height, text, colour in BOXES.values():
        style = "round,pad=0.02,rounding_size=0.12"
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=colour, edgecolor="#555555"))
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8.5)
    for start, end in ARROWS:
        axes.add_patch(FancyArrowPatch(*_ends(BOXES[start], BOXES[end]), arrowstyle="-|>", mutation_scale=14, color="#333333"))
    for x, colour, text in ((0.0, MEMORY, "in memory"), (2.5, REGISTERS, "in registers alone: never written")):
        axes.add_patch(FancyBboxPatch((x, 4.95), 0.3, 0.25, boxstyle="round,pad=0.02", facecolor=colour, edgecolor="#555555"))
        axes.text(x + 0.5, 5.07, text, va="center", fontsize=10)
    axes.text(6.8, 0.35, "one program: 128 of 1,048,576 positions, |F| = 384, |H| = 32, D = 768", ha="center", fontsize=10)
    axes.set(xlim=(-0.2, 13.8), ylim=(0, 5.4), aspect="equal")
    axes.axis("off")
    figure.savefig(Path(__file__).with_name("kernel-flow.png"), dpi=110, bbox_inches="tight", metadata={"Software": None})


def _ends(
    start: tuple[float, float, float, float, str, str], end: tuple[float, float, float, float, str, str]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """From the side of one box to the side of the other that faces it."""
    (x, y, w, h, *_), (u, v, s, t, *_) = start, end
    if u >= x + w and abs((y + h / 2) - (v + t / 2)) < h:
        return (x + w + 0.03, y + h / 2), (u - 0.03, v + t / 2)
    if u >= x + w:
        return (x + w + 0.03, y + h / 2), (u - 0.03, v + t / 2 + (0.2 if y > v else -0.2))
    return (x + w / 2, y + h + 0.03), (u + s / 2, v - 0.03)


if __name__ == "__main__":
    main()
