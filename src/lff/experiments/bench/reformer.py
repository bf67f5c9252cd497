"""A training step of the paper's Reformer, transformers' own, on pictures of 64x64x3 read as 12,288 tokens."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments.bench.entrants import Tables
from lff.experiments.bench.row import Row, at_most
from lff.experiments.bench.turns import AGAIN, Bench, Work
from lff.experiments.bench.works import EAGER, training_step

OURS, TABLES = "Learnable-Fourier+MLP", "Embed-2D"


class PixelPositions(nn.Module):
    """The encoding of a picture's grid, made once for the batch and its three colours, beside a table of the colours.

    Args:
        encoding: of (row, col).
        side: height and width of the picture.
        colours: size of the colours' share.
    """

    cells: Tensor

    def __init__(self, encoding: nn.Module, side: int, colours: int) -> None:
        super().__init__()
        self.encoding, self.colours = encoding, nn.Parameter(torch.randn(3, colours))
        self.register_buffer("cells", rearrange(lff.grid((side, side)), "h w c -> (h w) c"))

    def forward(self, position_ids: Int[Tensor, "batch length"]) -> Float[Tensor, "1 length depth"]:
        places: Tensor = self.encoding(self.cells)
        joined = torch.cat(
            [repeat(places, "n d -> n rgb d", rgb=3), repeat(self.colours, "rgb d -> n rgb d", n=len(places))], dim=-1
        )
        return rearrange(joined, "n rgb d -> 1 (n rgb) d")


def step(bench: Bench, *, batch: int = 8, side: int = 64, layers: int = 6, width: int = 1024) -> list[Row]:
    """At the paper's size by default; a step takes most of a second on an H200."""
    places, colours = 3 * width // 4, width // 4
    ids = torch.randint(256, (batch, 3 * side * side), device=bench.device)

    def maker(make: Callable[[], nn.Module]) -> Work:
        torch.manual_seed(0)
        model = _host(side, layers, width)
        model.reformer.embeddings.position_embeddings = PixelPositions(make(), side, colours)
        return training_step(model.to(bench.device), partial(_loss, ids=ids), bench.half)

    def ours() -> nn.Module:
        return lff.LearnableFourier(2, places, hidden=32, layer_norm=True)

    def tables() -> nn.Module:
        return Tables(lff.Embed((side, side), places))

    makers = {
        (EAGER, OURS): partial(maker, ours),
        (EAGER, TABLES): partial(maker, tables),
        (EAGER, AGAIN): partial(maker, tables),
    }
    times = bench.race(makers)
    what = f"training step of a Reformer, {layers} layers of width {width}, batch {batch} x {3 * side * side:,}, bfloat16"
    equal, spread = times.equal("reformer", what, EAGER, TABLES)
    return [times.row("reformer", what, (EAGER, OURS), (EAGER, TABLES), bar=at_most(1.005), spread=spread), equal]


def _loss(model: nn.Module, *, ids: Int[Tensor, "batch length"]) -> Float[Tensor, ""]:
    """Nats a token; the tokens are shifted here, since the host would leave the last one out."""
    logits: Tensor = model(functional.pad(ids[:, :-1], (1, 0))).logits
    return functional.cross_entropy(rearrange(logits.float(), "b n v -> (b n) v"), rearrange(ids, "b n -> (b n)"))


def _host(side: int, layers: int, width: int):  # type: ignore[no-untyped-def]
    """The paper's: shared queries and keys hashed twice into 192 buckets, chunks of 128, reversible layers."""
    from transformers import ReformerConfig, ReformerModelWithLMHead

    config = ReformerConfig(
        vocab_size=256,
        hidden_size=width,
        num_attention_heads=8,
        attention_head_size=width // 16,
        attn_layers=["lsh"] * layers,
        feed_forward_size=4 * width,
        hidden_act="gelu_new",
        hidden_dropout_prob=0.0,
        lsh_attention_probs_dropout_prob=0.0,
        lsh_attn_chunk_length=128,
        lsh_num_chunks_before=1,
        lsh_num_chunks_after=0,
        num_buckets=192,
        num_hashes=2,
        max_position_embeddings=3 * side * side,
        axial_pos_embds=False,
        is_decoder=True,
        layer_norm_eps=1e-6,
        use_cache=False,
        pad_token_id=None,
    )
    return ReformerModelWithLMHead(config).train()
