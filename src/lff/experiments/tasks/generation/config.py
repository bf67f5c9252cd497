"""The settings of image generation, and its presets."""

from dataclasses import dataclass, replace
from typing import Literal

from lff.experiments.config import Config

#: Figure 3a and 3b of the paper, the ablation of its appendix, and its KL loss.
METHODS = (
    "Embed-2D",
    "Embed-1D",
    "Sine-1D",
    "Sine-2D",
    "MLP",
    "Learnable-Fourier",
    "Learnable-Fourier+MLP",
    "MD-Sine",
    "MD-Sine+MLP",
    "Learnable-Fourier+MLP(kl=1.0)",
)


@dataclass(frozen=True)
class GenerationConfig(Config):
    """A Reformer over the pixels of a picture, and the encoding's own settings."""

    size: int = 32
    """Height and width of pictures, in pixels."""
    width: int = 256
    """Of the Reformer, a multiple of 16; a quarter of the encoding is for the colour."""
    layers: int = 4
    """Of the Reformer."""
    heads: int = 4
    """Of the attention."""
    head: int = 32
    """Width of a head."""
    feed_forward: int = 4
    """Width of the feed-forward layers over that of the Reformer."""
    chunk: int = 64
    """Tokens that attend together; must divide the tokens of a picture."""
    buckets: int = 96
    """That a round of hashing has, even: twice as many as chunks in the Reformer paper."""
    rounds: int = 2
    """Of hashing."""
    host: Literal["kept", "recomputed", "transformers"] = "kept"
    """Which code runs the layers: ours with activations kept, ours with them recomputed, or transformers' own."""
    gamma: float | tuple[float, float] = 1.0
    """Of the Fourier methods, in pixels; a pair spreads it over the scales between."""
    hidden: int = 32
    """|H| of the methods with an MLP."""
    layer_norm: bool = True
    """LayerNorm in the encoding's MLP."""
    scale: float = 1.0
    """Root mean square of learned encodings at the start."""
    judged: int = 0
    """Pictures of the validation set that are evaluated, the first ones; 0 for all."""
    keep: bool = True
    """Keep the weights of a finished run, for `lff generate`."""


def tiny() -> GenerationConfig:
    """`lff compare generation --preset tiny`: half a minute on two CPU cores, for the tests; far from trained."""
    return GenerationConfig(
        methods=("Embed-2D", "Learnable-Fourier+MLP"),
        seeds=2,
        steps=30,
        batch=8,
        rate=3e-3,
        warmup=5,
        size=12,
        width=32,
        layers=2,
        heads=2,
        head=8,
        chunk=24,
        buckets=12,
        judged=32,
        evaluate_every=10,
        checkpoint_every=10,
        log_every=5,
        tensorboard=False,
    )


def demo() -> GenerationConfig:
    """`lff compare generation`: 4 methods, 2 seeds on the embedded garments, at 14x14 pixels.

    10 minutes of processor time, so 5 on two CPU cores; bits/dim of 4.6 for Embed-2D, 4.5 for Learnable-Fourier+MLP.
    """
    return replace(
        tiny(),
        methods=("Embed-2D", "Embed-1D", "Sine-2D", "Learnable-Fourier+MLP"),
        steps=400,
        batch=16,
        rate=2e-3,
        warmup=40,
        size=14,
        width=64,
        head=32,
        chunk=14,
        buckets=28,
        judged=200,
        evaluate_every=50,
        checkpoint_every=200,
        log_every=20,
        tensorboard=True,
    )


def mini() -> GenerationConfig:
    """`lff compare generation --preset mini --data DIR --workers 15`: 30,000 pictures of Tiny-ImageNet at 32x32.

    A quarter of the paper's tokens, so that a run sees four times as many pictures in the same time. 17 minutes on an H200 under
    NVIDIA's MPS for the 30 runs; bits/dim of 4.94 for Embed-2D and 4.88 for Learnable-Fourier+MLP.
    """
    return GenerationConfig(
        methods=METHODS,
        seeds=3,
        steps=2500,
        batch=16,
        rate=1e-3,
        warmup=250,
        betas=(0.9, 0.98),
        eps=1e-9,
        precision="bf16",
        compile="layers",
        judged=1000,
        evaluate_every=250,
        checkpoint_every=500,
        log_every=50,
    )


def paper() -> GenerationConfig:
    """`torchrun --nproc-per-node 8 -m lff compare generation --preset paper --data IMAGENET64 --accumulate 4`.

    The settings of Trax's reformer_imagenet64 with the paper's batch, which is 8 pictures at a time on each of 8 GPUs in 4
    parts; 60,664,832 parameters with Embed-2D. Not run here: docs/generation.md says what a step takes.
    """
    return GenerationConfig(
        methods=METHODS,
        seeds=3,
        steps=100_000,
        batch=256,
        rate=0.03125 / 8000**0.5,
        warmup=8000,
        schedule="rsqrt",
        betas=(0.9, 0.98),
        eps=1e-9,
        clip=0.0,
        precision="bf16",
        compile="layers",
        size=64,
        width=1024,
        layers=6,
        heads=8,
        head=64,
        chunk=128,
        buckets=192,
        evaluate_every=5000,
        checkpoint_every=500,
        log_every=50,
    )
