"""What detection's features give to a head that looks at one cell after the other, to see DETR on the same features against.

    python benchmarks/detection_head.py --data COCO --sizes 96 112 128 --longest 192 --batch 32 --steps 1500

COCO is its public layout. Features, batches, augmentation, optimiser and evaluation are those of the preset `mini`, with what is
named changed; in DETR's place are two 3x3 convolutions that tell, of the cell that an object's centre is in, its category and its
box. Of what overlaps by half the likelier is kept (non-maximum suppression). It is plain, so it is a floor of what is in the
features, not a ceiling.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import tables
import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from torchvision.ops import batched_nms

from lff.experiments.engine import Engine, launch
from lff.experiments.environment import environment
from lff.experiments.methods import Row, parse
from lff.experiments.tasks.detection.batch import Batch
from lff.experiments.tasks.detection.boxes import corners, generalised_iou
from lff.experiments.tasks.detection.config import mini
from lff.experiments.tasks.detection.efficientnet import CHANNELS
from lff.experiments.tasks.detection.kept import Drawn
from lff.experiments.tasks.detection.task import Detection

WIDTH, OVERLAP, RARE = 128, 0.5, -4.0  # the last: log-odds that a cell is a centre, at the start


class Head(nn.Module):
    """Log-odds of each category at each cell, and a box from there.

    In evaluation it answers as DETR does: the likeliest boxes as queries, their categories as logits.
    """

    def __init__(self, categories: int, queries: int) -> None:
        super().__init__()
        self.categories, self.queries = categories, queries
        self.layers = nn.Sequential(
            *(nn.Conv2d(CHANNELS, WIDTH, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.ReLU()),
            nn.Conv2d(WIDTH, categories + 4, 1),
        )
        nn.init.constant_(self.layers[-1].bias[:categories], RARE)

    def maps(
        self, inputs: Float[Tensor, "batch channels height width"], mask: Bool[Tensor, "batch height width"]
    ) -> tuple[Float[Tensor, "batch categories height width"], Float[Tensor, "batch 4 height width"]]:
        odds, sides = self.layers(inputs).float().split([self.categories, 4], dim=1)
        row, column = (each.cumsum(axis) - 0.5 for axis, each in ((1, mask.float()), (2, mask.float())))
        high, wide = mask[:, :, :1].sum(1, keepdim=True), mask[:, :1].sum(2, keepdim=True)
        centre = torch.stack([column / wide, row / high], dim=1) + 0.1 * sides[:, :2]
        return odds, torch.cat([centre, sides[:, 2:].sigmoid()], dim=1)

    def forward(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        odds, boxes = self.maps(inputs, mask)
        odds = odds.masked_fill(~mask[:, None], -torch.inf)
        found = [self._likeliest(*each) for each in zip(odds, boxes, strict=True)]
        return torch.stack([logits for logits, _ in found])[None], torch.stack([boxes for _, boxes in found])[None]

    def _likeliest(self, odds: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and boxes of one picture's queries; one that has no box left has no category."""
        scores, flat = rearrange(odds, "c h w -> (h w c)"), rearrange(boxes, "xywh h w -> (h w) xywh")
        each = flat.repeat_interleave(self.categories, dim=0)
        labels = torch.arange(len(scores)) % self.categories
        kept = batched_nms(corners(each), scores, labels, OVERLAP)[: self.queries]
        logits = torch.full((self.queries, self.categories + 1), -100.0)
        logits[:, -1] = 0.0
        logits[torch.arange(len(kept)), labels[kept]] = scores[kept].clamp(min=-100.0)
        places = torch.full((self.queries, 4), 0.5)
        places[: len(kept)] = each[kept]
        return logits, places


class Cells(Detection):
    """Detection with this head."""

    def model(self, row: Row) -> nn.Module:
        return Head(len(self.train.categories), self.config.queries)

    def loss(self, model: Any, batch: Batch | Drawn) -> Tensor:
        """Focal loss at all cells, L1 and generalised IoU at the centres of objects."""
        assert isinstance(batch, Drawn)
        batch = self.kept_training.batch(batch)
        odds, boxes = model.maps(batch.inputs.float(), batch.mask)
        labels, wanted, real = batch.targets
        high, wide = batch.mask[:, :, 0].sum(1, keepdim=True), batch.mask[:, 0].sum(1, keepdim=True)
        column, row = ((wanted[..., i] * side).long().clamp(max=side - 1) for i, side in enumerate((wide, high)))
        image = torch.arange(len(real))[:, None].expand_as(real)
        place = (image[real], row[real], column[real])
        centres = torch.zeros_like(odds)
        centres[place[0], labels[real], place[1], place[2]] = 1.0
        likely, count = odds.sigmoid(), real.sum().clamp(min=1)
        missed = torch.where(centres > 0, 1 - likely, 0.5 * likely).square()
        focal = missed * functional.binary_cross_entropy_with_logits(odds, centres, reduction="none")
        ours, theirs = rearrange(boxes, "b xywh h w -> b h w xywh")[place], wanted[real]
        apart = (ours - theirs).abs().sum() + (1 - generalised_iou(corners(ours), corners(theirs))).sum()
        return ((focal * batch.mask[:, None]).sum() + 2 * apart) / count

    def layers(self, model: nn.Module) -> list[nn.Module]:
        return [model]

    def encoding(self, model: nn.Module) -> None:
        return None


def judged(task: Cells, seed: int, device: str) -> dict[str, Any]:
    """COCO's measures after training."""
    engine = Engine(task, parse("none"), seed, launch(device, task.config.precision))
    batches = engine.batches()
    for step in range(1, task.config.steps + 1):
        loss = engine.advance(batches)
        if step % 250 == 0:
            print(f"step {step:,}: loss {loss.item():.3f}", flush=True)
    return engine.evaluate(task.final)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=mini().sizes)
    parser.add_argument("--longest", type=int, default=mini().longest)
    parser.add_argument("--batch", type=int, default=mini().batch)
    parser.add_argument("--steps", type=int, default=mini().steps)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    changed = {"sizes": tuple(args.sizes), "longest": args.longest, "batch": args.batch, "steps": args.steps}
    task = Cells(replace(mini(), **changed, compile="no", loaders=1), args.data)
    rows = []
    for seed in range(args.seeds):
        found = judged(task, seed, "cpu")
        best = max(found["categories"], key=found["categories"].get)
        rows.append({"seed": seed, **{key: 100 * found[key] for key in ("ap50", "ap", "ap75")}, "best": best})
        print(rows[-1], flush=True)
    tables.save("detection-head", {"environment": environment(seeds=list(range(args.seeds))), "rows": rows})


if __name__ == "__main__":
    main()
