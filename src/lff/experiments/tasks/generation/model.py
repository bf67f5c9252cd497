"""transformers' Reformer over the pixels of a picture, with a method's encoding and the initialisation of Trax."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from transformers import ReformerConfig, ReformerModelWithLMHead

import lff
from lff.encodings.encoding import Encoding
from lff.experiments.methods import Row
from lff.experiments.problems import Problem
from lff.experiments.tasks.generation.config import GenerationConfig
from lff.experiments.tasks.generation.fast import speed_up
from lff.experiments.tasks.generation.positions import PixelPositions

VALUES = 256  # of a token: those of a byte


class PixelModel(nn.Module):
    """Logits of every value of every pixel, from the pixels before it.

    Args:
        host: a ReformerModelWithLMHead with an encoding of pixels.
    """

    def __init__(self, host: Any) -> None:
        super().__init__()
        self.host = host
        #: What draws the seeds of the hashes in training; torch's own where it is None.
        self.hashes: torch.Generator | None = None

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n values"]:
        """Tokens are shifted by one, 0 first; the last is asked for and never read."""
        self.seed()
        logits: Tensor = self.host(input_ids=functional.pad(ids[:, :-1], (1, 0))).logits
        return logits

    def seed(self) -> None:
        """Sets the hashes' seeds: drawn in training, the same always in evaluation.

        Without one transformers draws them from the system, and no run could be repeated. Processes that train together draw
        the same, so that a picture is hashed as in one process.
        """
        layers = self.host.reformer.encoder.layers
        count = len(layers)
        drawn = torch.randint(2**31, (count,), generator=self.hashes, device="cpu").tolist() if self.training else range(count)
        for layer, seed in zip(layers, drawn, strict=True):
            layer.attention.self_attention.hash_seed = seed

    @property
    def positions(self) -> PixelPositions:
        found: PixelPositions = self.host.reformer.embeddings.position_embeddings
        return found


def build(config: GenerationConfig, row: Row, channels: int) -> PixelModel:
    """A Reformer with fresh weights, made before its encoding: the same seed gives every method the same host."""
    host = _host(config, channels)
    _initialise(host)
    try:
        host.reformer.embeddings.position_embeddings = _positions(config, row, channels)
    except TypeError as error:
        raise Problem(f"{row.label} cannot be made: {error}") from error
    if config.host != "transformers":
        speed_up(host, recompute=config.host == "recomputed")
    return PixelModel(host)


def _host(config: GenerationConfig, channels: int) -> Any:
    share = config.width // 8
    host = ReformerModelWithLMHead(
        ReformerConfig(
            vocab_size=VALUES,
            hidden_size=config.width,
            num_attention_heads=config.heads,
            attention_head_size=config.head,
            attn_layers=["lsh"] * config.layers,
            feed_forward_size=config.feed_forward * config.width,
            hidden_act="gelu_new",
            hidden_dropout_prob=0.0,
            lsh_attention_probs_dropout_prob=0.0,
            lsh_attn_chunk_length=config.chunk,
            lsh_num_chunks_before=1,
            lsh_num_chunks_after=0,
            num_buckets=config.buckets,
            num_hashes=config.rounds,
            max_position_embeddings=config.size**2 * channels,
            axial_pos_shape=(config.size, config.size, channels),
            axial_pos_embds_dim=(3 * share, 3 * share, 2 * share),
            is_decoder=True,
            layer_norm_eps=1e-6,
            use_cache=False,
            pad_token_id=None,  # 0 is a pixel's value, not padding
        )
    )
    # transformers counts the head's bias among its weights and adds it nowhere.
    host.lm_head.decoder.bias = host.lm_head.bias
    return host


@torch.no_grad()
def _initialise(host: Any) -> None:
    """As Trax: dense layers Glorot-uniform with biases near zero, tokens uniform with a variance of 1 / width."""
    words = host.reformer.embeddings.word_embeddings.weight
    bound = math.sqrt(3 / words.shape[1])
    nn.init.uniform_(words, -bound, bound)
    for module in host.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.normal_(module.bias, std=1e-6)


def _positions(config: GenerationConfig, row: Row, channels: int) -> PixelPositions:
    """A pixel's encoding with the colour's table; Embed-1D and Sine-1D number all tokens, and have none (docs/errata.md, P12)."""
    options = _options(config, row.name) | row.options
    numbered = row.name.startswith(("Embed-1D", "Sine-1D"))
    colours = config.width // 4 if options.pop("colours", not numbered) and not numbered else 0
    normalize = options.pop("normalize", row.name == "MLP")  # the MLP alone wants coordinates of order one
    extent = (config.size, config.size, channels) if numbered else (config.size, config.size)
    depth = config.width - colours
    if options.pop("bias", False):
        encoding = _with_bias(row, depth, options)
    else:
        encoding = lff.build(row.name, coords=len(extent), depth=depth, extent=extent, **options)
    return PixelPositions(encoding, config.size, channels, colours=colours, normalize=normalize)


def _with_bias(row: Row, depth: int, options: dict[str, Any]) -> Encoding:
    """Algorithm 1 with a bias on W_r, as in the run whose parameters the paper's source counts (docs/errata.md, P6)."""
    if row.name != "Learnable-Fourier+MLP":
        raise Problem(f"bias=True is for Learnable-Fourier+MLP, got {row.label}")
    features = lff.FourierFeatures(2, options.pop("features", depth), gamma=options.pop("gamma"), bias=True)
    return lff.Modulated(features, depth, **options)


def _options(config: GenerationConfig, name: str) -> dict[str, Any]:
    """The config's settings for the encoding, as far as the method has them."""
    options: dict[str, Any] = {}
    if "Fourier" in name:
        options["gamma"] = config.gamma
    if name.endswith("MLP"):
        options["hidden"] = config.hidden
    if name.endswith("+MLP"):
        options["layer_norm"] = config.layer_norm
    if name.endswith("MLP") or name.startswith("Embed"):
        options["scale"] = config.scale
    return options
