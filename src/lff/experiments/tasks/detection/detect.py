"""`lff detect`: what a trained model finds in pictures, drawn on them, and as a file of COCO's results format."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from lff.experiments import finished
from lff.experiments.data.annotated import Category
from lff.experiments.data.picture import read, rgb
from lff.experiments.folder import write
from lff.experiments.problems import Problem
from lff.experiments.tasks.detection import backbones
from lff.experiments.tasks.detection import model as models
from lff.experiments.tasks.detection.augment import resized
from lff.experiments.tasks.detection.batch import Sample, collate, moved, normalised
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.features import features_of
from lff.experiments.tasks.detection.task import detections

#: Colours that tell neighbours apart, of ColorBrewer's Set1; white is legible on each.
COLOURS = ("#e41a1c", "#377eb8", "#4daf4a", "#984ea3", "#d95f02", "#a65628", "#c51b8a", "#1b7837")


class Finder:
    """A finished run, ready to look at pictures.

    Args:
        run: its folder.
        weights: of the backbone, where it was frozen and its package is not installed.
        device: where to run.
    """

    def __init__(self, run: Path, weights: Path | None, device: torch.device) -> None:
        about, row, kept, _ = finished.load(run, "detection")
        self.config = finished.settings(DetectionConfig, about, methods=(about["method"],), weights=weights)
        self.categories = [Category(*each) for each in about["categories_found"]]
        self.device = device
        file = backbones.weights_of(self.config.backbone, weights) if self.config.frozen else None
        if self.config.frozen and backbones.digest(file) != about["weights"]:
            raise Problem(f"{run} was trained on features of other weights than those of {file}: give its own as --weights")
        self.backbone = models.extractor(self.config).to(device).eval() if self.config.frozen else None
        # What is loaded afterwards holds the backbone's weights too, where it was trained.
        plain = dataclasses.replace(self.config, weights=None) if not self.config.frozen else self.config
        self.model = models.build(plain, row, len(self.categories))
        self.model.load_state_dict(kept)
        self.model.to(device).eval()

    @torch.no_grad()
    def __call__(self, pixels: np.ndarray) -> Tensor:
        """x1, y1, x2, y2 in pixels, score and label, the likeliest first."""
        size = max(self.config.unseen_sizes or self.config.sizes)
        none = torch.empty(0, 4), torch.empty(0, dtype=torch.int64)
        batch = moved(collate([Sample(resized(pixels, size, self.config.longest), *none)]), self.device)
        kind, mask = backbones.KINDS[self.config.backbone], batch.mask
        if self.backbone is None:
            inputs = normalised(batch.inputs, mask, kind.mean, kind.std)
        else:  # as they are kept for training
            inputs = features_of(self.backbone, batch, self.config).to(torch.bfloat16).float()
            mask = torch.ones(1, *inputs.shape[-2:], dtype=torch.bool, device=self.device)
        logits, boxes = self.model(inputs, mask)
        found = detections(logits[-1], boxes[-1], torch.tensor([[pixels.shape[2], pixels.shape[1]]], device=self.device))[0].cpu()
        found = found[found[:, 5] < len(self.categories)]
        return found[found[:, 4].argsort(descending=True)]


def detect(
    run: Path, images: Sequence[Path], out: Path, threshold: float, weights: Path | None, device: torch.device
) -> list[str]:
    """Draws what is found on each picture, and writes detections.json; gives a line for each picture.

    Args:
        run: the folder of a finished run.
        images: files.
        out: folder for the drawn pictures and the json, which has every query whatever its score.
        threshold: score from which on a box is drawn.
        weights: of a frozen backbone.
        device: where to run.
    """
    finder = Finder(run, weights, device)
    lines, results = [], []
    for number, path in enumerate(images):
        pixels = read(str(path), rgb)
        found = finder(pixels)
        results += _results(found, int(path.stem) if path.stem.isdigit() else number, finder.categories)
        shown = found[found[:, 4] >= threshold]
        again = f"-{number}" if path.stem in {other.stem for other in images[:number]} else ""
        file = out / f"{path.stem}{again}-detected.png"
        out.mkdir(parents=True, exist_ok=True)
        drawn(pixels, shown, finder.categories).save(file)
        named = ", ".join(f"{finder.categories[int(label)].name} {score:.2f}" for *_, score, label in shown.tolist())
        lines.append(f"{path}: {named or 'nothing'}; drawn in {file}")
    write(out / "detections.json", json.dumps(results))
    return lines


def drawn(pixels: np.ndarray, found: Tensor, categories: Sequence[Category]) -> Image.Image:
    """The picture with a box and a name for each that is found, the likeliest on top; small pictures are enlarged."""
    image = Image.fromarray(np.ascontiguousarray(np.moveaxis(pixels, 0, -1)))
    factor = max(1, round(640 / max(image.size)))
    image = image.resize((image.width * factor, image.height * factor), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(image)
    thick = max(2, round(max(image.size) / 300))
    for x1, y1, x2, y2, score, label in found.flip(0).tolist():
        colour = COLOURS[int(label) % len(COLOURS)]
        left, top = (min(max(0.0, factor * low), side - 1.0) for low, side in ((x1, image.width), (y1, image.height)))
        right, bottom = max(left, min(factor * x2, image.width - 1.0)), max(top, min(factor * y2, image.height - 1.0))
        pen.rectangle((left, top, right, bottom), outline=colour, width=thick)
        text = f"{categories[int(label)].name} {score:.2f}"
        name = pen.textbbox((left, top), text, font_size=14)
        pen.rectangle((name[0] - 2, name[1] - 2, name[2] + 2, name[3] + 2), fill=colour)
        pen.text((left, top), text, fill="white", font_size=14)
    return image


def _results(found: Tensor, image: int, categories: Sequence[Category]) -> list[dict[str, Any]]:
    return [
        {
            "image_id": image,
            "category_id": categories[int(label)].id,
            "bbox": [round(side, 2) for side in (x1, y1, x2 - x1, y2 - y1)],
            "score": round(score, 5),
        }
        for x1, y1, x2, y2, score, label in found.tolist()
    ]
