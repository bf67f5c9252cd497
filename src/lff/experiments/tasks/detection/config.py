"""The settings of object detection, and its presets: one for each of the paper's three tables, at each size."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lff.experiments.config import Config
from lff.experiments.problems import Problem
from lff.experiments.tasks.detection.backbones import KINDS
from lff.experiments.tasks.detection.efficientnet import TAIL

#: The paper's tables of detection: normalised positions, unseen sizes, and what W_r starts from.
METHODS = ("Sine-2D", "Embed-2D", "MLP", "Learnable-Fourier+MLP")
KL = "Learnable-Fourier+MLP(kl=1.0)"
STARTS = ("Uniform [0, 1]", "Uniform [0, 1] & MLP", "N(0, 4^-2)", "N(0, 4^-2) & MLP")


@dataclass(frozen=True)
class DetectionConfig(Config):
    """DETR, its pictures, and the encoding's own settings."""

    backbone: Literal["resnet50", "timm-resnet50", "efficientnet-lite0", "small"] = "resnet50"
    """The convolutional network: transformers' or timm's ResNet-50, timm's EfficientNet-Lite0, or one of four layers."""
    weights: Path | None = None
    """File with the backbone's weights; EfficientNet-Lite0 finds those of its package by itself."""
    frozen: bool = False
    """Leave the backbone as it is, and compute its features once for every size and mirror image."""
    tail: int = 0
    """Last layers of a frozen EfficientNet-Lite0 that train along all the same, behind the features that are kept; 3 at most."""
    stride: int = 32
    """Pixels to a cell of the feature map."""
    width: int = 256
    """Of the Transformer."""
    encoder_layers: int = 6
    """Of the Transformer."""
    decoder_layers: int = 6
    """Of the Transformer; each has a loss of its own."""
    heads: int = 8
    """Of the Transformer."""
    feed_forward: int = 2048
    """Width of the feed-forward layers."""
    dropout: float = 0.1
    """In the Transformer, attention apart."""
    attention_dropout: float = 0.1
    """Of attention weights."""
    queries: int = 100
    """Objects that are found in a picture at most."""
    groups: int = 1
    """Groups of queries while it trains, each matched by itself and blind to the others (Chen et al., 2022); one is kept."""
    outputs: int = 0
    """Classes that the head tells apart, beside "no object"; 0 for as many as there are categories. DETR's has 91."""
    backbone_rate: float = 0.1
    """Learning rate of the backbone over that of the rest."""
    sizes: tuple[int, ...] = (480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800)
    """Short sides that pictures are resized to, one at random for each."""
    unseen_sizes: tuple[int, ...] = ()
    """Short sides that are evaluated and never trained; without any, the largest of `sizes` is evaluated."""
    longest: int = 1333
    """The long side at most, whatever the short one is."""
    normalize: bool = True
    """Positions from 0 to 2 pi over every picture, as DETR has them; otherwise in cells. Tables always count cells."""
    crop: bool = True
    """Train on a part of the picture in half of all cases. Of features that are kept, a part is made of whole cells."""
    flip: bool = True
    """Mirror pictures in half of all cases."""
    gamma: float = 1.0
    """Of the Fourier methods, in the units of the positions."""
    hidden: int = 256
    """|H| of the methods with an MLP."""
    scale: float = 0.7
    """Root mean square of tables and of what an MLP gives at the start; that of sines."""
    categories: int = 0
    """Keep the categories that the most training pictures have; 0 keeps all."""
    least: float = 0.0
    """For --categories count only those whose objects fill at least this share of their picture, by the median."""
    empty: bool = True
    """Keep pictures that show none of the categories, to train on and to be judged by."""
    judged: int = 0
    """Pictures that evaluations before the last one look at; 0 for all."""
    enlarge: float = 1.0
    """Factor on lengths before objects count as small, medium or large; for pictures that were made smaller."""
    scenes: tuple[int, int] = (512, 64)
    """Without --data: scenes to train on and to be judged by."""
    loaders: int = 4
    """Processes that read pictures; 0 reads them in this one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sizes:
            raise Problem("--sizes must name at least one, got none")
        if self.stride not in (strides := KINDS[self.backbone].strides):
            raise Problem(f"--stride of {self.backbone} must be one of {', '.join(map(str, strides))}, got {self.stride}")
        if self.groups < 1:
            raise Problem(f"--groups must be at least 1, got {self.groups}")
        if not 0 <= self.tail <= TAIL:
            raise Problem(f"--tail must be from 0 to {TAIL}, got {self.tail}")
        if self.tail and not (self.frozen and self.backbone == "efficientnet-lite0"):
            raise Problem(f"--tail is of a frozen efficientnet-lite0, got {self.backbone}{'' if self.frozen else ', not frozen'}")
        if not 0 <= self.least < 1:
            raise Problem(f"--least must be a share of a picture, from 0 to 1, got {self.least}")
        if shared := set(self.sizes) & set(self.unseen_sizes):
            raise Problem(f"--unseen-sizes must not be trained: {sorted(shared)} are among --sizes")
        if self.longest < max(self.largest, 1):
            raise Problem(f"--longest must be at least the largest size, {self.largest}, got {self.longest}")

    @property
    def largest(self) -> int:
        return max(*self.sizes, *self.unseen_sizes, 0)

    @property
    def cells(self) -> int:
        """Of a feature map, along either side, at most."""
        return math.ceil(self.longest / self.stride)

    def shared(self) -> dict[str, Any]:
        """Without the path of the weights: a run says what they are, not where."""
        return {key: value for key, value in super().shared().items() if key not in ("weights", "loaders")}


def tiny() -> DetectionConfig:
    """`lff compare detection --preset tiny`: scenes of garments, a minute on two CPU cores, for the tests; far from trained."""
    return DetectionConfig(
        methods=("Sine-2D", "Learnable-Fourier+MLP"),
        seeds=2,
        steps=60,
        batch=16,
        rate=1e-3,
        warmup=10,
        clip=0.1,
        backbone="small",
        stride=8,
        backbone_rate=1.0,
        width=32,
        encoder_layers=1,
        decoder_layers=2,
        heads=2,
        feed_forward=64,
        dropout=0.0,
        attention_dropout=0.0,
        queries=10,
        enlarge=4.0,
        sizes=(48, 56, 64),
        longest=64,
        hidden=32,
        scenes=(256, 64),
        evaluate_every=30,
        checkpoint_every=30,
        log_every=10,
        loaders=0,
        tensorboard=False,
    )


def demo() -> DetectionConfig:
    """`lff compare detection`: scenes of embedded garments, the rows that the paper shows maps of, 2 seeds.

    30 minutes of processor time, so 15 on two CPU cores; AP50 between 16 and 32, more by the seed than by the method.
    """
    return replace(
        tiny(),
        methods=(*METHODS, "Uniform [0, 1]"),
        steps=1500,
        batch=32,
        warmup=100,
        width=64,
        heads=4,
        feed_forward=128,
        sizes=(64,),
        crop=False,
        scenes=(8000, 500),
        judged=250,
        evaluate_every=250,
        checkpoint_every=500,
        log_every=50,
        tensorboard=True,
    )


def mini() -> DetectionConfig:
    """`lff compare detection --preset mini --data COCO --workers 13`: normalised positions, the paper's first table.

    COCO with a longest side of 160 pixels, where most objects are smaller than a cell. So it is the 10 categories that the most
    pictures show, of such as fill a twentieth of them by the median, and the pictures that show one. Features of a frozen
    EfficientNet-Lite0 at three sizes, kept; maps of up to 12x18 cells. Not run on a GPU yet: on two CPU cores, at smaller
    sizes and 1,800 steps of 16, AP50 is 11 to 12 for every method (results/detection-pilot).
    """
    return DetectionConfig(
        methods=METHODS,
        seeds=3,
        steps=6_000,
        batch=64,
        rate=5e-4,
        warmup=200,
        weight_decay=1e-4,
        clip=0.1,
        precision="bf16",
        compile="step",
        backbone="efficientnet-lite0",
        frozen=True,
        stride=16,
        width=128,
        encoder_layers=2,
        decoder_layers=4,
        heads=4,
        feed_forward=512,
        dropout=0.0,
        attention_dropout=0.0,
        queries=10,
        sizes=(128, 160, 192),
        longest=288,
        hidden=128,
        categories=10,
        least=0.05,
        empty=False,
        judged=1000,
        enlarge=4.0,
        evaluate_every=1_000,
        checkpoint_every=1_000,
        log_every=100,
        tensorboard=False,
    )


def mini_unseen() -> DetectionConfig:
    """`lff compare detection --preset mini-unseen --data COCO --workers 13`: the paper's second table.

    The three largest sizes are for validation alone, and positions count cells. gamma is the same share of a map as in `mini`.
    """
    return replace(mini(), sizes=(128, 144, 160), unseen_sizes=(176, 192, 208), longest=312, normalize=False, gamma=2.0)


def mini_start() -> DetectionConfig:
    """`lff compare detection --preset mini-start --data COCO --workers 13`: what W_r starts from, the paper's third table.

    Beside it the KL loss of Eq. 10, which holds W_r to what it starts from. The settings are those of `mini`, so that its runs of
    Sine-2D, copied here, are not run again.
    """
    return replace(mini(), methods=(*STARTS, KL, "Sine-2D"))


def paper() -> DetectionConfig:
    """`torchrun --nproc-per-node 8 -m lff compare detection --preset paper --data COCO --weights RESNET50`.

    300 epochs of COCO 2017 in batches of 64, the rate a tenth from epoch 200 on; the paper's Table has an AP of 40.1 for Sine-2D
    and 40.2 for Learnable-Fourier+MLP. ResNet-50 has its ImageNet weights from a file. Not run here.
    """
    return DetectionConfig(
        methods=METHODS,
        seeds=1,
        steps=554_400,
        batch=64,
        rate=1e-4,
        schedule="drop",
        drop=369_600,
        weight_decay=1e-4,
        clip=0.1,
        precision="bf16",
        outputs=91,
        evaluate_every=18_480,
        checkpoint_every=1_848,
        log_every=100,
        loaders=8,
    )


def paper_unseen() -> DetectionConfig:
    """`... --preset paper-unseen ...`: sizes 736, 768 and 800 are for validation alone, and positions count cells."""
    return replace(paper(), sizes=paper().sizes[:-3], unseen_sizes=paper().sizes[-3:], normalize=False, gamma=6.7)


def paper_start() -> DetectionConfig:
    """`... --preset paper-start ...`: what W_r starts from."""
    return replace(paper(), methods=(*STARTS, KL, "Sine-2D"))
