"""Training steps of encoders that the encoding is for, each with the encoding and with what it would replace."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

import lff
from lff.experiments.bench.entrants import Tables
from lff.experiments.bench.row import Bar, Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Work
from lff.experiments.bench.works import EAGER, GRAPH, both_ways, training_step
from lff.experiments.methods import parse

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
    """transformers' DETR up to the end of its encoder, on maps of a ResNet that are padded differently."""
    from lff.experiments.tasks.detection.backbones import KINDS
    from lff.experiments.tasks.detection.config import paper
    from lff.experiments.tasks.detection.model import build

    settings = replace(paper(), frozen=True, width=width, feed_forward=8 * width, hidden=32)
    features = torch.randn(images, KINDS[settings.backbone].channels, size, size, device=bench.device)
    sides = torch.linspace(0.5, 1.0, images) * size
    cells = lff.grid((size, size))
    inside = [(cells[..., 0] < side) & (cells[..., 1] < sides[-1 - i]) for i, side in enumerate(sides)]
    mask = torch.stack(inside).to(bench.device)

    def model(method: str) -> nn.Module:
        return build(settings, parse(method), settings.outputs).to(bench.device).train()

    def swapped(make: Callable[[], nn.Module]) -> nn.Module:
        detector: Any = model(OURS)
        detector.host.model.position_embedding.encoding = make()
        return detector.to(bench.device)  # type: ignore[no-any-return]

    def encoded(detector: Any) -> Tensor:
        found, *_ = detector.encoded(features, mask)
        assert isinstance(found, Tensor)
        return found

    models = {
        OURS: partial(model, OURS),
        "Sine-2D": partial(model, "Sine-2D"),  # transformers' own
        "lff's Sine-2D": partial(swapped, lambda: lff.Sine(2, width)),
        ASKED: partial(swapped, lambda: Asked(lff.Sine(2, width))),
    }
    layers = f"{settings.encoder_layers} layers of width {width}"
    what = f"training step of transformers' DETR encoder, {layers}, {images} masks of {size}x{size}, bfloat16"
    return compared(bench, "detr", what, models, encoded, at_most(1.0))


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
