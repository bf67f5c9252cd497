"""The settings of widget captioning, and its presets."""

from dataclasses import dataclass, replace
from typing import Literal

from lff.experiments.config import Config

#: The rows of the paper's table, of the appendix's table of Sine-4D+MLP, and the row with the KL loss.
PAPER = (
    "Embed-4D",
    "MLP",
    "Sine-4D",
    "Sine-4D+MLP-1/4",
    "Sine-4D+MLP-2/2",
    "Sine-4D+MLP-4/1",
    "Learnable-Fourier-2/2",
    "Fixed-Fourier+MLP-1/4",
    "Fixed-Fourier+MLP-2/2",
    "Fixed-Fourier+MLP-4/1",
    "Learnable-Fourier+MLP-1/4",
    "Learnable-Fourier+MLP-2/2",
    "Learnable-Fourier+MLP-4/1",
    "Learnable-Fourier+MLP-2/2(kl=1.0)",
)
#: And what shows how much positions matter, and whether the MLP alone fails because of the size of its coordinates.
METHODS = (*PAPER, "none", "MLP(normalize=False)")


@dataclass(frozen=True)
class CaptioningConfig(Config):
    """The widget captioning model, which of its parts there are, its words, and the encoding's own settings."""

    width: int = 128
    """Of screen encoder and decoder."""
    layers: int = 6
    """Of the screen encoder, and as many of the decoder."""
    heads: int = 8
    """Of attention."""
    feed_forward: int = 4
    """Width of the feed-forward layers over that of the Transformer."""
    dropout: float = 0.2
    """Of attention, after ReLUs, of inputs, in the pixel encoder and in the encoding's MLP."""
    pixels: bool = False
    """Encode the pixels of a widget; wants screenshots."""
    resource: bool = False
    """Read the words of resource ids; wants view hierarchies."""
    clickable: bool = False
    """Tell whether an element can be clicked; wants view hierarchies."""
    dom: bool = False
    """Tell an element's place in the tree of the screen."""
    own_text: bool = False
    """Show the developer's text of the widget that is to be captioned, as the public code does; never a caption."""
    vocabulary: int = 10_000
    """Words that are known, of captions and screens together, the most frequent ones."""
    word: int = 128
    """Size of learned word vectors."""
    glove: str = ""
    """A text file of word vectors (GloVe), which then stay as they are; without it they are learned."""
    text_length: int = 10
    """Words of a text that are read."""
    caption_length: int = 21
    """Words of a caption at most, its end included."""
    beam: int = 4
    """Width of the beam search; 1 is greedy."""
    penalty: float = 1.0
    """The exponent of the length penalty, ((5 + length) / 6) ^ penalty."""
    gamma: float | tuple[float, float] = 100.0
    """Of the Fourier methods; coordinates go from 0 to 99."""
    hidden: int = 0
    """|H| of the methods with an MLP; 0 takes |F|, the width over the number of groups."""
    scale: float = 0.4
    """Root mean square of learned tables and encodings at the start, about that of GloVe's vectors."""
    judge: Literal["test", "dev"] = "test"
    """What is evaluated: the test screens, or those for choosing settings."""
    screens: int = 0
    """Screens to evaluate, the first ones; 0 for all."""
    keep: bool = True
    """Keep the weights at the end, for `lff caption`."""


def tiny() -> CaptioningConfig:
    """`lff compare captioning --preset tiny`: under a minute on one CPU core, for the tests; far from trained."""
    return CaptioningConfig(
        methods=("Embed-4D", "Learnable-Fourier+MLP-2/2"),
        seeds=2,
        steps=30,
        batch=8,
        rate=5e-3,
        warmup=5,
        betas=(0.9, 0.997),
        eps=1e-9,
        width=32,
        layers=1,
        heads=4,
        word=32,
        vocabulary=500,
        caption_length=12,
        beam=2,
        judge="dev",
        screens=20,
        evaluate_every=15,
        checkpoint_every=15,
        log_every=5,
        tensorboard=False,
    )


def demo() -> CaptioningConfig:
    """`lff compare captioning`: 4 methods, 2 seeds of a small model on the screens inside the package."""
    return replace(
        tiny(),
        methods=("Embed-4D", "none", "Sine-4D", "Learnable-Fourier+MLP-2/2"),
        steps=600,
        batch=32,
        warmup=60,
        width=64,
        layers=2,
        word=64,
        vocabulary=3000,
        caption_length=21,
        beam=4,
        judge="test",
        screens=0,
        evaluate_every=200,
        checkpoint_every=200,
        log_every=20,
    )


def mini() -> CaptioningConfig:
    """`lff compare captioning --preset mini --workers 12`: the paper's Transformer on the screens inside the package.

    All rows, three seeds, a quarter of an hour on one H200. There are no pixels, no resource ids and no clickable flags in these
    data, and the tree of elements is made from their boxes, so that it is left out: it would tell positions by another way.
    """
    return CaptioningConfig(
        methods=METHODS,
        seeds=3,
        steps=1200,
        batch=64,
        rate=1e-3,
        warmup=300,
        betas=(0.9, 0.997),
        eps=1e-9,
        precision="bf16",
        compile="graphs",
        vocabulary=6000,
        evaluate_every=300,
        checkpoint_every=600,
        log_every=50,
        tensorboard=False,
    )


def paper() -> CaptioningConfig:
    """`lff compare captioning --preset paper --data WIDGET_CAPTIONING --glove glove.6B.300d.txt`: the paper's setting.

    Widget Captioning with Rico's screens, all parts of the model, 100k steps of 64 screens; the paper says 12 hours on 4 V100
    a run, and has CIDEr 97.0 for Embed-4D and 100.7 for Learnable-Fourier+MLP-4/1. A fifth of its captions are of screens that
    were never released. Not run here.
    """
    return CaptioningConfig(
        methods=PAPER,
        seeds=3,
        steps=100_000,
        batch=64,
        rate=128**-0.5 / 2000**0.5,
        warmup=2000,
        schedule="rsqrt",
        betas=(0.9, 0.997),
        eps=1e-9,
        precision="bf16",
        pixels=True,
        resource=True,
        clickable=True,
        dom=True,
        own_text=True,
        word=300,
        caption_length=11,
        evaluate_every=5000,
        checkpoint_every=1000,
        log_every=100,
    )
