"""EfficientNet-Lite0 by timm, in front of DETR: all of it, or its last layers behind features that were computed before."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

CHANNELS = 192  # behind each of the last layers
TAIL = 3  # of these the last, which are residual and keep the size of a map


class Convolutions(nn.Module):
    """EfficientNet-Lite0 without its last block and what follows; every channel with mean zero and deviation one.

    That block says what a picture shows wherever it is: hardly anything of a cell's column can be told from it, and much from the
    block before (docs/detection.md). DETR gives positions to queries and keys alone, so what values know of a place is what the
    backbone leaves in them. It is in evaluation mode for ever: its batch normalisation keeps the statistics that it came with.

    Args:
        stride: pixels to a cell.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        import timm

        self.model: Any = timm.create_model("tf_efficientnet_lite0", features_only=True, output_stride=stride)
        self.model.blocks = self.model.blocks[:-1]
        self.intermediate_channel_sizes = [CHANNELS]
        self.parted = False
        self.eval()

    def train(self, mode: bool = True) -> "Convolutions":
        return super().train(False)

    def part(self, last: int) -> "Tail":
        """Takes the last layers off, and gives them."""
        layers = list(self.model.blocks[-1])
        self.parted, self.model.blocks[-1] = True, nn.Sequential(*layers[: len(layers) - last])
        return Tail(layers, last)

    def forward(
        self, pixel_values: Float[Tensor, "batch 3 height width"], pixel_mask: Bool[Tensor, "batch height width"]
    ) -> list[tuple[Tensor, Tensor]]:
        x = self.model.blocks(self.model.bn1(self.model.conv_stem(pixel_values)))
        mask = functional.interpolate(pixel_mask[None].float(), size=x.shape[-2:]).bool()[0]
        if not self.parted:
            mean, deviation = statistics(self.model.blocks[-1])
            x = (x - mean) / deviation
        return [(x, mask)]


class Tail(nn.Module):
    """Its last layers, behind features that were computed before: they train along, as DETR's backbone does.

    Batch normalisation keeps what it came with, its factors too, as in DETR. What is padding is zero in front of every
    convolution that is wider than a cell, so that a map does not depend on it.

    Args:
        block: all layers of the block that ends with them.
        last: how many they are.
    """

    def __init__(self, block: Sequence[Any], last: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(block[len(block) - last :])
        self.intermediate_channel_sizes = [CHANNELS]
        mean, deviation = statistics(block)
        self.mean, self.deviation = nn.Buffer(mean), nn.Buffer(deviation)
        self.requires_grad_(True)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> "Tail":
        return super().train(False)

    def forward(
        self, pixel_values: Float[Tensor, "batch channels height width"], pixel_mask: Bool[Tensor, "batch height width"]
    ) -> list[tuple[Tensor, Tensor]]:
        x, there = pixel_values, rearrange(pixel_mask, "b h w -> b 1 h w")
        if x.is_cuda:
            x = x.contiguous()  # convolutions of single channels are slow on a GPU where channels are no planes
        layer: Any
        for layer in self.layers:
            wide = _normalised(x, layer.conv_pw, layer.bn1) * there
            x = x + _normalised(_normalised(wide, layer.conv_dw, layer.bn2), layer.conv_pwl, layer.bn3)
        return [((x - self.mean) / self.deviation * there, pixel_mask)]


def _normalised(x: Tensor, convolution: Any, norm: Any) -> Tensor:
    """A convolution, batch normalisation with the statistics it came with, and what follows, with the second in the first."""
    factor = norm.weight * (norm.running_var + norm.eps).rsqrt()
    weight = convolution.weight * rearrange(factor, "c -> c 1 1 1")
    bias = norm.bias - norm.running_mean * factor
    y = functional.conv2d(x, weight, bias, 1, convolution.padding, convolution.dilation, convolution.groups)
    return norm.act(y)  # type: ignore[no-any-return]


@torch.no_grad()
def statistics(block: Iterable[Any]) -> tuple[Float[Tensor, "channels 1 1"], Float[Tensor, "channels 1 1"]]:
    """Mean and deviation of every channel behind a block, as its batch normalisation has them of ImageNet.

    Residual layers add up what batch normalisation gives, with its biases as means and its factors as deviations. On COCO they
    are right to a tenth; without them features are five times as large as the positions that are added to them.
    """
    norms = [layer.bn3 for layer in block]
    mean = torch.stack([norm.bias for norm in norms]).sum(0)
    deviation = torch.stack([norm.weight for norm in norms]).square().sum(0).sqrt()
    return rearrange(mean, "c -> c 1 1"), rearrange(deviation, "c -> c 1 1")
