"""The widget captioning model "Pixel+Local+Context" of Li et al., EMNLP 2020, with a method's encoding of the boxes.

Shapes: b screens, n elements of the largest, t words of a text, k widgets to caption, l words of a caption, d the width.
"""

from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning.config import CaptioningConfig
from lff.experiments.tasks.captioning.layers import DecoderLayer, EncoderLayer, PixelEncoder, Stack, dense, normal
from lff.experiments.tasks.captioning.screens import GRID
from lff.experiments.tasks.captioning.tensors import TABLE, Batch
from lff.experiments.tasks.captioning.words import START

TYPES = 100  # rows of the table of types, as in the public code
PIXELS = 256  # numbers that the pixel encoder gives


class Words(nn.Module):
    """Word vectors, projected to the width; given ones stay as they are, others are learned.

    Args:
        count: words of the vocabulary.
        size: of a vector.
        width: of the model.
        scale: root mean square of learned vectors at the start.
        given: vectors of a GloVe file.
    """

    def __init__(self, count: int, size: int, width: int, scale: float, given: Float[Tensor, "words size"] | None) -> None:
        super().__init__()
        if given is None:
            self.table: Tensor = normal(count, size, scale)
        else:
            self.register_buffer("table", given)
        self.project = dense(size if given is None else given.shape[1], width)

    def forward(self, numbers: Int[Tensor, "..."]) -> Float[Tensor, "... d"]:
        y: Tensor = self.project(functional.embedding(numbers, self.table))
        return y

    def pooled(self, numbers: Int[Tensor, "b n t"]) -> Float[Tensor, "b n d"]:
        """The largest of each feature over the words of a text, special ones apart; zero for a text without words."""
        real = rearrange(numbers > START, "b n t -> b n t 1")
        vectors: Tensor = self(numbers)
        most = vectors.masked_fill(~real, torch.finfo(vectors.dtype).min).amax(2)
        return most * real.any(2)


class Captioner(nn.Module):
    """Screen encoder and caption decoder.

    Args:
        config: sizes, and which parts there are.
        words: of the vocabulary.
        given: word vectors of a GloVe file.
    """

    def __init__(self, config: CaptioningConfig, words: int, given: Float[Tensor, "words size"] | None = None) -> None:
        super().__init__()
        width, scale = config.width, config.scale
        sizes = (width, config.heads, config.feed_forward * width, config.dropout)
        self.words = Words(words, config.word, width, scale, given)
        self.types = normal(TYPES, width, scale)
        self.clickable = normal(2, width, scale) if config.clickable else None
        self.dom = nn.ParameterList(normal(TABLE, width, scale) for _ in range(3)) if config.dom else None
        self.pixels = PixelEncoder(config.dropout) if config.pixels else None
        self.resource = config.resource
        parts = 3 + config.resource + config.clickable + config.dom
        self.join = dense(parts * width, width)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Stack(EncoderLayer(*sizes) for _ in range(config.layers))
        self.encoded = nn.LayerNorm(width, eps=1e-6)
        self.combine = dense((PIXELS if config.pixels else 0) + width, width)
        self.decoder = Stack(DecoderLayer(*sizes) for _ in range(config.layers))
        self.decoded = nn.LayerNorm(width, eps=1e-6)
        self.order = lff.Sine(1, width)  # of the words in a caption: no method changes it
        self.say = dense(width, words)
        #: Of the boxes: what a method changes.
        self.position: nn.Module = nn.Identity()
        #: Multiplied to coordinates from 0 to 99.
        self.unit = 1.0

    def forward(self, batch: Batch, before: Int[Tensor, "k l"]) -> Float[Tensor, "k l words"]:
        """Logits of every word of the captions, given those before it."""
        return self.decode(self.encode(batch), before)

    def encode(self, batch: Batch) -> Float[Tensor, "k d"]:
        """What the decoder is told of each widget."""
        parts = [self.words.pooled(batch.text)]
        if self.resource:
            parts.append(self.words.pooled(batch.resource))
        parts.append(functional.embedding(batch.types, self.types))
        parts.append(self.position(self.unit * batch.boxes))
        if self.clickable is not None:
            parts.append(functional.embedding(batch.clickable, self.clickable))
        if self.dom is not None:
            places = batch.dom.unbind(-1)
            of_trees = [functional.embedding(p, table) for p, table in zip(places, self.dom, strict=True)]
            parts.append(torch.stack(of_trees).sum(0))
        hold = batch.there[..., None]
        x = self.dropout(torch.tanh(self.join(torch.cat([part.to(parts[0].dtype) for part in parts], -1))) * hold)
        mask = rearrange(batch.there, "b n -> b 1 1 n")
        x = self.encoder(x, mask)
        context = rearrange(self.encoded(x), "b n d -> (b n) d")[batch.at]
        if self.pixels is not None:
            if batch.pixels is None:
                raise ValueError("the model has a pixel encoder, but these screens have no pictures")
            context = torch.cat([self.pixels(batch.pixels.float() / 255), context], -1)
        y: Tensor = self.dropout(functional.relu(self.combine(context)))
        return y

    def decode(
        self, memory: Float[Tensor, "k d"], before: Int[Tensor, "k l"], *, last: bool = False
    ) -> Float[Tensor, "k l2 words"]:
        """Logits of the word after each of those that are there, or after the last one alone."""
        places = lff.grid(before.shape[1], device=before.device)
        x = self.dropout(self.words(before) + self.order(places))
        x = self.decoder(x, rearrange(memory, "k d -> k 1 d"))
        y: Tensor = self.say(self.decoded(x[:, -1:] if last else x))
        return y


def build(config: CaptioningConfig, row: Row, words: int, given: Float[Tensor, "words size"] | None) -> Captioner:
    """A model with fresh weights, made before its encoding: the same seed gives every method the same host."""
    model = Captioner(config, words, given)
    options = _options(config, row.name) | row.options
    # The MLP alone wants coordinates of order one: of 0 to 99 its output would start a hundred times too large.
    model.unit = 1 / (GRID - 1) if options.pop("normalize", row.name == "MLP") else 1.0
    try:
        model.position = lff.build(row.name, coords=4, depth=config.width, extent=(GRID,) * 4, **options)
    except TypeError as error:
        raise Problem(f"{row.label} cannot be made: {error}") from error
    return model


def _options(config: CaptioningConfig, name: str) -> dict[str, Any]:
    """The config's settings for the encoding, as far as the method has them; |H| = |F| = D / G."""
    groups = {"2/2": 2, "4/1": 4}.get(name[-3:], 1)
    options: dict[str, Any] = {}
    if "Fourier" in name:
        options["gamma"] = config.gamma
    if "MLP" in name:
        options |= {"hidden": config.hidden or config.width // groups, "dropout": config.dropout}
    if "MLP" in name or name.startswith("Embed"):
        options["scale"] = config.scale
    return options
