"""transformers' DETR with a method's encoding, run as the original was. What it comes with, normalised sines, is Sine-2D."""

import contextlib
import math
from typing import Any

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import DetrConfig, DetrForObjectDetection
from transformers.models.detr import modeling_detr

import lff
from lff.adapters.detr import MaskPositions
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.tasks.detection import backbones
from lff.experiments.tasks.detection.config import DetectionConfig
from lff.experiments.tasks.detection.efficientnet import Convolutions

OWN = "Sine-2D"  # the host's
JOINED = ("q_proj", "k_proj", "v_proj")  # one matrix in DETR


class Detector(nn.Module):
    """DETR as Carion et al. ran it, on the modules of transformers' DETR.

    With more than one group of queries, a step of training finds every picture's objects once a group; evaluation has the first.

    transformers' own way through them differs: with auxiliary losses each decoder layer is given the normalised state of the one
    before, the encoder's input is dropped out once more, and every encoder layer waits for the GPU to look for infinities.

    Args:
        host: with the encoding swapped in.
        groups: that its queries are of.
    """

    def __init__(self, host: Any, groups: int = 1) -> None:
        super().__init__()
        self.host, self.groups = host, groups
        for layer in host.model.encoder.layers:
            layer.__class__ = EncoderLayer

    def forward(
        self,
        inputs: Float[Tensor, "batch channels height width"],
        mask: Bool[Tensor, "batch height width"],
        room: int | None = None,
    ) -> tuple[Float[Tensor, "layers batch queries classes"], Float[Tensor, "layers batch queries 4"]]:
        """Class logits, and boxes as (centre x, centre y, width, height), of every decoder layer, and of every group of a layer
        behind each other; of the last layer and the first group in evaluation.

        Args:
            inputs: normalised pixels, or features where the host has no backbone.
            mask: True where an image is, False where it was padded.
            room: cells that no image has more of: padding beyond them is left out of the Transformer. None leaves out nothing.
        """
        detr, host = self.host.model, self.host
        features, cells = detr.backbone(inputs, mask)[-1]
        with _attention(features.device):
            x, places, seen = self.encoded(features, cells, room)
            queries, among = self._queries(len(x))
            state = torch.zeros_like(queries)
            states = []
            for layer in detr.decoder.layers:
                state = layer(state, among, places, queries, x, encoder_attention_mask=seen)
                states.append(state)
        found = detr.decoder.layernorm(torch.stack(states if self.training else states[-1:]))
        if self.training:
            found = rearrange(found, "l b (g q) d -> (l g) b q d", g=self.groups)
        return host.class_labels_classifier(found), host.bbox_predictor(found).sigmoid()

    def _queries(self, batch: int) -> tuple[Float[Tensor, "batch queries d"], Bool[Tensor, "1 1 queries queries"] | None]:
        """What tells the queries apart, and which of them each attends to; None for all."""
        known = self.host.model.query_position_embeddings.weight
        if not self.training or self.groups == 1:
            return repeat(known[: len(known) // self.groups], "q d -> b q d", b=batch), None
        group = torch.arange(len(known), device=known.device) // (len(known) // self.groups)
        return repeat(known, "q d -> b q d", b=batch), rearrange(group[:, None] == group, "q k -> 1 1 q k")

    def encoded(
        self,
        features: Float[Tensor, "batch channels height width"],
        cells: Bool[Tensor, "batch height width"],
        room: int | None = None,
    ) -> tuple[Float[Tensor, "batch cells d"], Float[Tensor, "batch cells d"], Bool[Tensor, "batch 1 1 cells"]]:
        """What the encoder makes of a map, the encoding of its cells, and which of them are no padding."""
        detr = self.host.model
        x = rearrange(detr.input_projection(features), "b d h w -> b (h w) d")
        dtype = detr.query_position_embeddings.weight.dtype
        places = detr.position_embedding(shape=features.shape, device=features.device, dtype=dtype, mask=cells)
        places = rearrange(places, "b d h w -> b (h w) d")
        seen = rearrange(cells, "b h w -> b (h w)")
        if room is not None and room < seen.shape[1]:
            x, places, seen = _packed(x, places, seen, room)
        seen = rearrange(seen, "b n -> b 1 1 n")
        for layer in detr.encoder.layers:
            x = layer(x, seen, spatial_position_embeddings=places)
        return x, places, seen


def _attention(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """torch's fused attention, but for bfloat16 on a CPU, whose backward takes two to seven times as long as plain products."""
    slow = device.type == "cpu" and torch.is_autocast_enabled("cpu") and not torch.compiler.is_compiling()
    return sdpa_kernel(SDPBackend.MATH) if slow else contextlib.nullcontext()


def _packed(
    x: Float[Tensor, "batch cells d"], places: Float[Tensor, "batch cells d"], seen: Bool[Tensor, "batch cells"], room: int
) -> tuple[Float[Tensor, "batch {room} d"], Float[Tensor, "batch {room} d"], Bool[Tensor, "batch {room}"]]:
    """The cells that are no padding, in their order, with room for as many in every image."""
    count = seen.cumsum(1)
    to = torch.where(seen, count - 1, room)  # padding goes to a place that is cut off
    number = torch.arange(seen.shape[1], device=seen.device).expand_as(to)
    index = torch.zeros(len(seen), room + 1, dtype=torch.int64, device=seen.device).scatter_(1, to, number)[:, :room]
    index = rearrange(index, "b n -> b n 1")
    there = torch.arange(room, device=seen.device) < count[:, -1:]
    return torch.take_along_dim(x, index, dim=1), torch.take_along_dim(places, index, dim=1), there


class EncoderLayer(modeling_detr.DetrEncoderLayer):  # type: ignore[misc]
    """The host's, without a look for infinities in every step, which makes the processor wait for the GPU."""

    def forward(
        self,
        hidden_states: Float[Tensor, "batch cells width"],
        attention_mask: Bool[Tensor, "batch 1 1 cells"],
        spatial_position_embeddings: Float[Tensor, "batch cells width"],
    ) -> Float[Tensor, "batch cells width"]:
        attended, _ = self.self_attn(hidden_states, attention_mask, position_embeddings=spatial_position_embeddings)
        attended = functional.dropout(attended, p=self.dropout, training=self.training)
        x = self.self_attn_layer_norm(hidden_states + attended)
        y: Tensor = self.final_layer_norm(x + self.mlp(x))
        return y


def build(config: DetectionConfig, row: Row, classes: int) -> Detector:
    """DETR with fresh weights, its backbone's apart, made before its encoding: a seed gives every method the same host.

    A frozen backbone is no part of it, its tail apart: its features are computed before.
    """
    host: Any = DetrForObjectDetection(host_config(config, config.outputs or classes))
    _initialise(host)
    if config.tail:
        host.model.backbone = _backbone(config, host.model.backbone).part(config.tail)
    elif config.frozen:
        host.model.backbone = backbones.Given(backbones.KINDS[config.backbone].channels)
    else:
        host.model.backbone = _backbone(config, host.model.backbone)
    swap(config, row, host)
    return Detector(host, config.groups)


def extractor(config: DetectionConfig) -> nn.Module:
    """What of the backbone is frozen, alone: (pixels, mask) to feature maps and theirs."""
    host: Any = DetrForObjectDetection(host_config(config, 1))
    backbone: nn.Module = _backbone(config, host.model.backbone).eval().requires_grad_(False)
    if isinstance(backbone, Convolutions) and config.tail:
        backbone.part(config.tail)
    return backbone


def host_config(config: DetectionConfig, classes: int) -> DetrConfig:
    """What the host is made from. Its dropouts differ from DETR's by default; auxiliary_loss would change the network."""
    if not hasattr(modeling_detr, "DetrMLP"):
        raise Problem("detection needs transformers 5.17 or later, whose DETR has other modules than earlier ones")
    return DetrConfig(
        use_timm_backbone=False,
        backbone_config=backbones.described(config.backbone, config.stride),
        d_model=config.width,
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.feed_forward,
        decoder_ffn_dim=config.feed_forward,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.dropout,
        num_queries=config.queries * config.groups,
        num_labels=classes,
        auxiliary_loss=False,
    )


def _backbone(config: DetectionConfig, own: Any) -> Any:
    """The host's own, or what takes its place, with the weights that are given."""
    if config.backbone == "efficientnet-lite0":
        own = Convolutions(config.stride)
    file = backbones.weights_of(config.backbone, config.weights)
    if file is not None:
        backbones.load(own, file)
    if file is not None and "resnet" in config.backbone:
        backbones.freeze(own)
    else:  # with nothing learned before there is nothing to keep
        own.requires_grad_(True)
    return own


def swap(config: DetectionConfig, row: Row, host: nn.Module) -> None:
    """Puts the method's encoding into the host."""
    options = _options(config, row.name) | row.options
    table = row.name.startswith("Embed")
    normalize = bool(options.pop("normalize", config.normalize and not table))
    if row.name == OWN and normalize and not options:
        return
    if "gamma" in options and normalize:  # ours are positions in (0, 1], DETR's in (0, 2 pi]
        options["gamma"] /= 2 * math.pi
    try:
        encoding = lff.build(row.name, coords=2, depth=config.width, extent=(config.cells, config.cells), **options)
    except TypeError as error:
        raise Problem(f"{row.label} cannot be made: {error}") from error
    lff.swap(host, encoding, normalize=normalize)


def _options(config: DetectionConfig, name: str) -> dict[str, Any]:
    """The config's settings for the encoding, as far as the method has them."""
    options: dict[str, Any] = {}
    if name.startswith("Uniform"):
        options["gamma"] = 1.0
    elif name.startswith("N(0, 4^-2)"):
        options["gamma"] = 4.0
    elif "Fourier" in name:
        options["gamma"] = config.gamma
    if name.endswith("MLP"):
        options["hidden"] = config.hidden
    if name.endswith("MLP") or name.startswith("Embed"):
        options["scale"] = config.scale
    return options


@torch.no_grad()
def _initialise(host: Any) -> None:
    """As DETR does it: Glorot-uniform matrices in the Transformer, queries from N(0, 1), torch's own elsewhere.

    transformers draws all of them from N(0, 0.02^2). And it has three matrices where DETR's attention has one, [3 d, d], for
    queries, keys and values: Glorot's bound of that is smaller by the square root of two. With the larger one all cells become
    alike in the encoder, and all queries find one box for thousands of steps (docs/detection.md).
    """
    for part in (host.model.encoder, host.model.decoder):
        for name, parameter in part.named_parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter, gain=math.sqrt(0.5) if name.split(".")[-2] in JOINED else 1.0)
    nn.init.normal_(host.model.query_position_embeddings.weight)
    for layer in (host.model.input_projection, host.class_labels_classifier, *host.bbox_predictor.layers):
        layer.reset_parameters()


def encoding(model: Detector) -> lff.Encoding | None:
    """The model's encoding; None for the host's sines, which are no module of ours."""
    swapped = model.host.model.position_embedding
    return swapped.encoding if isinstance(swapped, MaskPositions) else None
