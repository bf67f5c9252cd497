"""Who takes part: Algorithm 1 on the kernels, plain and compiled, a peer, and the tables that it would replace."""

import importlib
import importlib.metadata
import importlib.util
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

import lff

OURS, PLAIN, COMPILED = "lff", "eager PyTorch", "torch.compile"
PEER = "learnable-fourier-positional-encoding"
LAUNCHES = "six empty launches"
_MODULE = "learnable_fourier_positional_encoding"


def fourier(device: torch.device, coords: int, depth: int, **options: Any) -> nn.Module:
    """Algorithm 1, with the same weights every time."""
    torch.manual_seed(0)
    return lff.LearnableFourier(coords, depth, **options).to(device)


def compiled(module: nn.Module) -> nn.Module:
    """By `torch.compile`, for the one shape that it will see."""
    module.compile(dynamic=False)
    return module


def peer_version() -> str | None:
    """Of the peer, installed or on the path; None where it is not there."""
    if importlib.util.find_spec(_MODULE) is None:
        return None
    try:
        return importlib.metadata.version(PEER)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module(_MODULE), "__version__", "of an unknown version"))


class Peer(nn.Module):
    """The peer, which has no LayerNorm and wants [positions, groups, coordinates of a group].

    Args:
        coords: coordinates of a position.
        depth: size of the encoding.
        features: |F|.
        hidden: |H|.
        groups: of coordinates.
    """

    def __init__(self, coords: int, depth: int, *, features: int, hidden: int = 32, groups: int = 1) -> None:
        super().__init__()
        self.groups = groups
        kind = importlib.import_module(_MODULE).LearnableFourierPositionalEncoding
        self.encode = kind(groups, coords // groups, features, hidden, depth, gamma=1.0)

    def forward(self, positions: Float[Tensor, "n coords"]) -> Float[Tensor, "n depth"]:
        encoded: Tensor = self.encode(rearrange(positions, "n (g m) -> n g m", g=self.groups))
        return encoded


class Tables(nn.Module):
    """An `lff.Embed` without the check of its positions, for which the CPU waits for a GPU and which no graph can hold.

    Args:
        embed: with one table an axis.
    """

    def __init__(self, embed: lff.Embed) -> None:
        super().__init__()
        self.tables, self.sum = embed.tables, embed.join == "sum"

    def forward(self, positions: Float[Tensor, "*batch coords"]) -> Float[Tensor, "*batch depth"]:
        indices = positions.long().unbind(-1)
        rows = [functional.embedding(index, table) for index, table in zip(indices, self.tables, strict=True)]
        return sum(rows[1:], rows[0]) if self.sum else torch.cat(rows, dim=-1)


class Launches(nn.Module):
    """An autograd function with as many kernels as a step of Algorithm 1 has, two forward and four backward, of one number each.

    What any such function costs on a processor, whatever its kernels do.

    Args:
        module: gives it its parameters.
        depth: size of its output, of which nothing is written.
    """

    def __init__(self, module: nn.Module, depth: int) -> None:
        super().__init__()
        self.weights, self.depth = nn.ParameterList(module.parameters()), depth

    def forward(self, positions: Float[Tensor, "*batch coords"]) -> Float[Tensor, "*batch depth"]:
        out: Tensor = _Launch.apply(positions, self.depth, *self.weights)
        return out


class _Launch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, positions: Tensor, depth: int, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(*weights)
        out = positions.new_empty(*positions.shape[:-1], depth, dtype=torch.bfloat16)
        one = out.new_empty(1)
        for _ in range(2):
            one.zero_()
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grads = tuple(torch.empty_like(weight) for weight in ctx.saved_tensors)
        one = grad.new_empty(1)
        for _ in range(4):
            one.zero_()
        return (None, None, *grads)
