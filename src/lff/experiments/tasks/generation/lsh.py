"""Attention by locality-sensitive hashing (Kitaev et al., ICLR 2020), with the numbers of transformers' LSHSelfAttention.

Queries and keys are one vector. In each of several rounds random rotations put every token into a bucket; tokens are sorted by
bucket, in a bucket by place, and cut into chunks; a token attends to those of its own chunk and of the chunk before it that come
earlier in the sequence. It attends to itself only where there is no other. Rounds are joined by their softmax denominators.

Shapes: b sequences, h heads, n tokens, d values of a head, r rounds, c chunks of all rounds, s tokens of a chunk.
"""

import math
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

#: Logits of a token with itself and with later ones.
ITSELF, LATER = -1e5, -1e9


def heads_of(attention: Any, hidden: Float[Tensor, "b n width"]) -> tuple[Float[Tensor, "b h n d"], Float[Tensor, "b h n d"]]:
    """The vectors that are query and key, and the values, of every head of an LSHSelfAttention."""
    h = attention.num_attention_heads
    qk, v = (rearrange(dense(hidden), "b n (h d) -> b h n d", h=h) for dense in (attention.query_key, attention.value))
    return qk, v


def rotations(attention: Any, like: Float[Tensor, "..."]) -> Float[Tensor, "h d r half"]:
    """Random directions, by the layer's `hash_seed` where it has one, on the device and in the dtype that it computes in."""
    half = attention.num_buckets // 2
    shape = (attention.num_attention_heads, attention.attention_head_size, attention.num_hashes, half)
    kind, seed = like.device, attention.hash_seed
    generator = None if seed is None else torch.Generator(kind).manual_seed(seed)
    dtype = torch.get_autocast_dtype(kind.type) if torch.is_autocast_enabled(kind.type) else like.dtype
    return torch.randn(shape, generator=generator, device=kind, dtype=dtype)


def hashed(qk: Float[Tensor, "b h n d"], directions: Float[Tensor, "h d r half"]) -> Int[Tensor, "b h r n"]:
    """The bucket of every token in every round: the direction, or its opposite, that lies nearest."""
    near = torch.einsum("bhnd,hdrk->bhrnk", qk.detach(), directions)
    return torch.cat([near, -near], dim=-1).argmax(-1)


def sort(buckets: Int[Tensor, "b h r n"]) -> tuple[Int[Tensor, "b h r n"], Int[Tensor, "b h r n"]]:
    """The tokens by bucket and place, and the place of every token in that order."""
    order = buckets.to(torch.int16).sort(dim=-1, stable=True).indices  # fewer digits to sort by than in int64
    places = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return order, torch.empty_like(order).scatter_(-1, order, places)


class Sorted(torch.autograd.Function):
    """Rows of a sequence in the order of every round; the gradient comes back by reading too, where indexing would add it up
    in whatever order a GPU does.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "b h n d"], order: Int[Tensor, "b h r n"], undo: Int[Tensor, "b h r n"]
    ) -> Float[Tensor, "b h r n d"]:
        ctx.save_for_backward(undo)
        return _read(x[:, :, None].expand(-1, -1, order.shape[2], -1, -1), order)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "b h r n d"]) -> tuple[Tensor, None, None]:
        (undo,) = ctx.saved_tensors
        return _read(grad, undo).sum(2), None, None


class Restored(torch.autograd.Function):
    """Rows of every round back in the order of the sequence."""

    @staticmethod
    def forward(
        ctx: Any, x: Float[Tensor, "b h r n d"], order: Int[Tensor, "b h r n"], undo: Int[Tensor, "b h r n"]
    ) -> Float[Tensor, "b h r n d"]:
        ctx.save_for_backward(order)
        return _read(x, undo)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "b h r n d"]) -> tuple[Tensor, None, None]:
        (order,) = ctx.saved_tensors
        return _read(grad, order), None, None


def _read(x: Float[Tensor, "b h r n d"], places: Int[Tensor, "b h r n"]) -> Float[Tensor, "b h r n d"]:
    return x.gather(3, places[..., None].expand(-1, -1, -1, -1, x.shape[-1]))


def attend(
    qk: Float[Tensor, "b h n d"],
    v: Float[Tensor, "b h n d"],
    order: Int[Tensor, "b h r n"],
    undo: Int[Tensor, "b h r n"],
    size: int,
) -> Float[Tensor, "b h n d"]:
    """What every token takes from those it attends to, all rounds joined.

    Args:
        qk: queries, and keys before they are normalised.
        v: values.
        order: from `sort`.
        undo: from `sort`.
        size: tokens of a chunk.
    """
    q, values = (rearrange(Sorted.apply(x, order, undo), "b h r (c s) d -> b h (r c) s d", s=size) for x in (qk, v))
    own = rearrange(order, "b h r (c s) -> b h (r c) s", s=size).to(torch.int32)
    dots = torch.einsum("bhcqd,bhckd->bhcqk", q, _two_chunks(normalised(q)))
    dots, total = masked(dots, own, _two_chunks(own))
    out = torch.einsum("bhcqk,bhckd->bhcqd", torch.exp(dots - total), _two_chunks(values))
    rounds = {"r": order.shape[2]}
    out = Restored.apply(rearrange(out, "b h (r c) s d -> b h r (c s) d", **rounds), order, undo)
    total = Restored.apply(rearrange(total, "b h (r c) s 1 -> b h r (c s) 1", **rounds), order, undo)
    return joined(out, total)


def normalised(q: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Keys: vectors of one length, over the square root of their size."""
    return q * torch.rsqrt(q.square().mean(-1, keepdim=True) + 1e-6) / math.sqrt(q.shape[-1])


def masked(
    dots: Float[Tensor, "*batch q k"], queries: Int[Tensor, "*batch q"], keys: Int[Tensor, "*batch k"]
) -> tuple[Float[Tensor, "*batch q k"], Float[Tensor, "*batch q 1"]]:
    """Logits in float32 with later tokens and the token itself put out of reach, and the logarithm of their exponentials' sum."""
    mine, theirs = queries[..., :, None], keys[..., None, :]
    exact = torch.promote_types(dots.dtype, torch.float32)
    dots = torch.where(mine > theirs, dots.to(exact), torch.where(mine == theirs, ITSELF, LATER).to(exact))
    return dots, dots.logsumexp(-1, keepdim=True)


def joined(out: Float[Tensor, "b h r n d"], total: Float[Tensor, "b h r n 1"]) -> Float[Tensor, "b h n d"]:
    """All rounds: each weighs as much as the exponentials of its logits."""
    # Not a softmax: where a token has only itself, at -1e5, the host's own rounding is kept.
    return (out * torch.exp(total - total.logsumexp(2, keepdim=True))).sum(2)


def _two_chunks(x: Tensor) -> Tensor:
    """Every chunk with the one before it in front; the first has the last."""
    return torch.cat([x.roll(1, dims=2), x], dim=3)


def output(attention: nn.Module, heads: Float[Tensor, "b h n d"]) -> Float[Tensor, "b n width"]:
    """The heads side by side, through the layer's last projection; `attention` is a ReformerAttention."""
    together: Tensor = attention.output(rearrange(heads, "b h n d -> b n (h d)"))  # type: ignore[operator]
    return together
