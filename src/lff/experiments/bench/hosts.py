"""Training steps of models that the encoding is for, each with the encoding and with what it would replace.

They are stand-ins of the right size where this package has no such task yet: what is measured is what an encoding adds to a step.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments.bench.entrants import Tables
from lff.experiments.bench.row import Bar, Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Work
from lff.experiments.bench.works import EAGER, GRAPH, both_ways, training_step

OURS = "Learnable-Fourier+MLP"
ASKED = "Sine-2D, asked for a gradient"


def captioner(bench: Bench, *, screens: int = 64, boxes: int = 100) -> list[Row]:
    """The widget captioner's encoder of a screen: six layers of width 128 over its boxes."""
    width, device = 128, bench.device
    content = torch.randn(screens, boxes, 5 * width, device=device)
    corners = torch.randint(100, (screens, boxes, 4), device=device).float()

    def model(make: Callable[[], nn.Module]) -> nn.Module:
        return ScreenEncoder(make(), width).to(device)

    def ours() -> nn.Module:
        return lff.LearnableFourier(4, width, groups=4, gamma=100.0, dropout=0.2)

    models = {
        f"{OURS}-4/1": partial(model, ours),
        "Embed-4D": partial(model, lambda: Tables(lff.Embed((100,) * 4, width, join="sum"))),
    }
    what = f"training step of a screen encoder, 6 layers of width {width}, {screens} screens of {boxes} boxes, bfloat16"
    return compared(bench, "captioner", what, models, lambda host: host(content, corners), at_most(1.01))


class ScreenEncoder(nn.Module):
    """Five features of every object and its place, joined, then a Transformer.

    Args:
        position: encodes boxes.
        width: of everything.
    """

    def __init__(self, position: nn.Module, width: int) -> None:
        super().__init__()
        self.position, self.join = position, nn.Linear(6 * width, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, nn.LayerNorm(width), enable_nested_tensor=False)

    def forward(
        self, content: Float[Tensor, "screens boxes features"], corners: Float[Tensor, "screens boxes 4"]
    ) -> Float[Tensor, "screens boxes width"]:
        joined = torch.cat([content, self.position(corners).to(content.dtype)], dim=-1)
        encoded: Tensor = self.layers(torch.tanh(self.join(joined)))
        return encoded


def detr(bench: Bench, *, images: int = 8, size: int = 42, width: int = 256) -> list[Row]:
    """DETR's encoder on maps that are padded differently."""
    device = bench.device
    pixels = torch.randn(images, size * size, width, device=device)
    sides = torch.linspace(0.5, 1.0, images) * size
    cells = lff.grid((size, size))
    mask = torch.stack([(cells[..., 0] < side) & (cells[..., 1] < sides[-1 - i]) for i, side in enumerate(sides)]).to(device)

    def model(make: Callable[[], nn.Module]) -> nn.Module:
        return DetrEncoder(make(), width).to(device)

    models = {
        OURS: partial(model, lambda: lff.LearnableFourier(2, width)),
        "Sine-2D": partial(model, lambda: lff.Sine(2, width)),
        "Sine-2D, plain PyTorch": partial(model, lambda: lff.Sine(2, width, impl="torch")),
        ASKED: partial(model, lambda: Asked(lff.Sine(2, width))),
    }
    what = f"training step of a DETR encoder, 6 layers of width {width}, {images} masks of {size}x{size}, bfloat16"
    return compared(bench, "detr", what, models, lambda host: host(pixels, mask), at_most(1.0))


class Asked(nn.Module):
    """An encoding whose gradient the layers compute and nobody uses: the least that anything learned adds to a step.

    Args:
        encoding: without parameters.
    """

    def __init__(self, encoding: nn.Module) -> None:
        super().__init__()
        self.encoding = encoding

    def forward(self, positions: Float[Tensor, "*batch coords"]) -> Float[Tensor, "*batch depth"]:
        encoded: Tensor = self.encoding(positions)
        return encoded.detach().requires_grad_()


class DetrEncoder(nn.Module):
    """Six layers, each of which adds the places to its queries and keys.

    Args:
        position: encodes (row, col).
        width: of everything but the feed-forward layers, which have eight times as much.
    """

    def __init__(self, position: nn.Module, width: int) -> None:
        super().__init__()
        self.position = position
        self.layers = nn.ModuleList(DetrLayer(width) for _ in range(6))

    def forward(
        self, x: Float[Tensor, "images cells width"], mask: Bool[Tensor, "images height width_"]
    ) -> Float[Tensor, "images cells width"]:
        places = 2 * math.pi * lff.grid_from_mask(mask, normalize=True, first=1, eps=1e-6)  # as DETR counts
        encoded = rearrange(self.position(places), "b h w d -> b (h w) d").to(x.dtype)
        padded = rearrange(~mask, "b h w -> b (h w)")
        for layer in self.layers:
            x = layer(x, encoded, padded)
        return x


class DetrLayer(nn.Module):
    """Self-attention and a feed-forward layer, each normalised after it is added.

    Args:
        width: of the layer.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 8, dropout=0.1, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 8 * width), nn.Linear(8 * width, width)
        self.norm_1, self.norm_2, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(
        self,
        x: Float[Tensor, "images cells width"],
        encoded: Float[Tensor, "images cells width"],
        padded: Bool[Tensor, "images cells"],
    ) -> Float[Tensor, "images cells width"]:
        placed = x + encoded
        attended, _ = self.attention(placed, placed, x, key_padding_mask=padded, need_weights=False)
        x = self.norm_1(x + self.dropout(attended))
        y: Tensor = self.norm_2(x + self.dropout(self.narrow(self.dropout(functional.relu(self.wide(x))))))
        return y


def compared(
    bench: Bench,
    case: str,
    what: str,
    models: Mapping[str, Callable[[], nn.Module]],
    call: Callable[[nn.Module], Tensor],
    bar: Bar,
) -> list[Row]:
    """A step with the first of the models over one with each of the others, which the second runs twice for the spread."""
    first, base, *_ = models

    def maker(make: Callable[[], nn.Module]) -> Work:
        torch.manual_seed(0)
        return training_step(make(), lambda host: call(host).float().square().mean(), bench.half)

    makers: dict[str, Callable[[], Work]] = {name: partial(maker, make) for name, make in models.items()}
    times = bench.longer().race(both_ways(bench, {**makers, AGAIN: makers[base]}))
    rows = []
    for how in (EAGER, GRAPH) if bench.gpu else (EAGER,):
        equal, spread = times.equal(case, f"{what}, {how}", how, base)
        for name in (name for name in models if name != first):
            held = None if name == ASKED else bar
            rows.append(times.row(case, f"{what}, {how}", (how, first), (how, name), bar=held, spread=spread))
        rows.append(equal)
    return rows
