"""A training step of the paper's DETR, backbone, matching and loss included: the detection task's own."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lff.experiments.bench.row import Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Work
from lff.experiments.bench.works import EAGER, training_step
from lff.experiments.methods import parse

OURS, SINES = "Learnable-Fourier+MLP", "Sine-2D"
OBJECTS = 7  # that COCO's pictures have on average


def step(bench: Bench, *, images: int = 8, size: tuple[int, int] = (800, 1066), **changes: Any) -> list[Row]:
    """At the paper's size by default, on random pictures: one of three fills the batch, one half its height, one half its width.

    Not as a CUDA graph: the matching waits for the GPU in every step. `changes` are of the preset's settings.
    """
    from lff.experiments.tasks.detection.batch import Batch, masked, moved, padded
    from lff.experiments.tasks.detection.config import paper
    from lff.experiments.tasks.detection.loss import Loss
    from lff.experiments.tasks.detection.model import build

    settings, losses = replace(paper(), sizes=(min(size),), longest=max(size), **changes), Loss()
    height, width = size
    sides = torch.tensor([(height, width), (height // 2, width), (height, width // 2)])[torch.arange(images) % 3]
    corners = torch.rand(images, OBJECTS, 2, 2).sort(dim=2).values.flatten(2)
    targets = padded(list(corners), list(torch.randint(settings.outputs, (images, OBJECTS))))
    batch = moved(Batch(torch.randn(images, 3, height, width), masked(sides, height, width), targets), bench.device)

    def lost(detector: nn.Module) -> Tensor:
        logits, boxes = detector(batch.inputs, batch.mask)
        return losses(logits, boxes, batch.targets)

    def maker(method: str) -> Work:
        torch.manual_seed(0)
        model = build(settings, parse(method), settings.outputs).to(bench.device).train()
        return training_step(model, lost, bench.half)

    makers = {(EAGER, OURS): OURS, (EAGER, SINES): SINES, (EAGER, AGAIN): SINES}
    times = bench.race({key: partial(maker, method) for key, method in makers.items()})
    layers = f"{settings.encoder_layers} + {settings.decoder_layers} layers of width {settings.width}"
    what = f"training step of DETR, {settings.backbone}, {layers}, {images} pictures of {height}x{width}, bfloat16"
    equal, spread = times.equal("detection", what, EAGER, SINES)
    return [times.row("detection", what, (EAGER, OURS), (EAGER, SINES), bar=at_most(1.01), spread=spread), equal]
