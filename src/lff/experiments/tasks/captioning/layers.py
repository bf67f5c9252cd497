"""The Transformer of the widget captioning model: layer norm first, no biases in attention, ReLU.

Shapes: q queries, k keys, d the width.
"""

import math

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

AFTER = 0.1  # dropout of what a layer adds: the public config misspells its key, so that the stack's own value holds


def dense(size_in: int, size_out: int, *, bias: bool = True) -> nn.Linear:
    """A dense layer as TensorFlow starts it: Glorot-uniform, no bias."""
    layer = nn.Linear(size_in, size_out, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


class Attention(nn.Module):
    """Multi-head attention without biases.

    Args:
        width: of what comes in and goes out.
        heads: a divisor of the width.
        dropout: of the weights.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.output = (dense(width, width, bias=False) for _ in range(4))

    def forward(
        self, x: Float[Tensor, "b q d"], memory: Float[Tensor, "b k d"], mask: Bool[Tensor, "..."] | None, *, causal: bool = False
    ) -> Float[Tensor, "b q d"]:
        q, k, v = (
            rearrange(each, "b n (h c) -> b h n c", h=self.heads)
            for each in (self.query(x), self.key(memory), self.value(memory))
        )
        dropout = self.dropout if self.training else 0.0
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal)
        y: Tensor = self.output(rearrange(found, "b h n c -> b n (h c)"))
        return y


class FeedForward(nn.Module):
    """Dense, ReLU, dropout, dense.

    Args:
        width: of what comes in and goes out.
        hidden: between them.
        dropout: after the ReLU.
    """

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.into, self.out, self.dropout = dense(width, hidden), dense(hidden, width), nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        y: Tensor = self.out(self.dropout(functional.relu(self.into(x))))
        return y


class EncoderLayer(nn.Module):
    """Elements of a screen attend to each other.

    Args:
        width: of the stack.
        heads: of attention.
        hidden: of the feed-forward part.
        dropout: of attention and after the ReLU.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention, self.feed = Attention(width, heads, dropout), FeedForward(width, hidden, dropout)
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.after = nn.Dropout(min(AFTER, dropout))

    def forward(self, x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b 1 1 n"]) -> Float[Tensor, "b n d"]:
        y = self.norm_1(x)
        x = x + self.after(self.attention(y, y, mask))
        z: Tensor = x + self.after(self.feed(self.norm_2(x)))
        return z


class DecoderLayer(nn.Module):
    """Words attend to those before them and to what the encoder says of their widget.

    Args:
        width: of the stack.
        heads: of attention.
        hidden: of the feed-forward part.
        dropout: of attention and after the ReLU.
    """

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.attention, self.cross = Attention(width, heads, dropout), Attention(width, heads, dropout)
        self.feed = FeedForward(width, hidden, dropout)
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(width, eps=1e-6) for _ in range(3))
        self.after = nn.Dropout(min(AFTER, dropout))

    def forward(self, x: Float[Tensor, "k l d"], memory: Float[Tensor, "k m d"]) -> Float[Tensor, "k l d"]:
        y = self.norm_1(x)
        x = x + self.after(self.attention(y, y, None, causal=True))
        x = x + self.after(self.cross(self.norm_2(x), memory, None))
        z: Tensor = x + self.after(self.feed(self.norm_3(x)))
        return z


class Stack(nn.ModuleList):
    """Layers one after the other, as one thing that can be compiled: a step of this small model is bound by its launches."""

    def forward(self, x: Float[Tensor, "b n d"], *others: Tensor) -> Float[Tensor, "b n d"]:
        for layer in self:
            x = layer(x, *others)
        return x


class PixelEncoder(nn.Module):
    """A small residual network: a grey picture of 64 x 64 becomes 256 numbers.

    Args:
        dropout: after every ReLU.
    """

    FILTERS = ((1, 4), (4, 16), (16, 32), (32, 64), (64, 128), (128, 256))
    KERNELS = ((5, 3, 5), (5, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3))

    def __init__(self, dropout: float) -> None:
        super().__init__()
        blocks = zip(self.FILTERS, self.KERNELS, strict=True)
        self.blocks = nn.Sequential(*(Block(*filters, kernels, dropout) for filters, kernels in blocks))

    def forward(self, pixels: Float[Tensor, "k 64 64"]) -> Float[Tensor, "k 256"]:
        found: Tensor = self.blocks(rearrange(pixels, "k h w -> k 1 h w"))
        return rearrange(found, "k c 1 1 -> k c")


class Block(nn.Module):
    """Two convolutions around which the input is added, and one that halves the sides.

    Args:
        size_in: channels that come in.
        size_out: channels that go out.
        kernels: sizes of the three.
        dropout: after every ReLU.
    """

    def __init__(self, size_in: int, size_out: int, kernels: tuple[int, int, int], dropout: float) -> None:
        super().__init__()
        sizes = (size_in, size_in, size_out)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(size_in, size, kernel, stride, padding=kernel // 2)
            for size, kernel, stride in zip(sizes, kernels, (1, 1, 2), strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(size, eps=1e-3, momentum=0.01) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "k c h w"]) -> Float[Tensor, "k c2 h2 w2"]:
        y = self.dropout(functional.relu(self.norms[0](self.convolutions[0](x))))
        y = self.dropout(functional.relu(self.norms[1](self.convolutions[1](y)) + x))
        z: Tensor = self.dropout(functional.relu(self.norms[2](self.convolutions[2](y))))
        return z


def normal(rows: int, size: int, scale: float) -> nn.Parameter:
    """A table of learned vectors with a root mean square of `scale`."""
    if not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale must be a positive number, got {scale}")
    return nn.Parameter(scale * torch.randn(rows, size))
