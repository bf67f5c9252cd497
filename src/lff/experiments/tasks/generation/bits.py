"""Bits per dimension: what a pixel's value costs on average, in bits, to someone who knows the model."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


def nats(logits: Float[Tensor, "b n values"], ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n"]:
    """The cross-entropy of every position, the first included, in float32 or better."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    found = functional.cross_entropy(
        rearrange(logits.to(exact), "b n v -> (b n) v"), rearrange(ids, "b n -> (b n)"), reduction="none"
    )
    return rearrange(found, "(b n) -> b n", b=len(ids))


def bits(nats: float) -> float:
    """Nats in bits: over the natural logarithm of 2."""
    return nats / math.log(2)
