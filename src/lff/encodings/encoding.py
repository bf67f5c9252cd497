"""What every encoding is: a function of positions, checked, and with outputs of the dtype that `nn.Linear` would give."""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Num, Shaped
from torch import Tensor, nn

from lff import arguments
from lff.encodings import pretrained
from lff.encodings.implementation import IMPLS


class Encoding(nn.Module, ABC):
    """A function of positions, `[..., coords] -> [..., depth]`, that treats every position by itself.

    A subclass writes `encode`; `forward` checks the positions and gives the output its dtype.

    Args:
        coords: coordinates of a position.
        depth: size of the encoding, D.
    """

    like: Tensor
    #: What the encoding was made with, by name; `save_pretrained` writes it down.
    arguments: dict[str, Any]
    #: Root mean square of the output's elements at initialisation; what is put on top of an encoding sets its weights by it.
    rms: float = 1.0
    _impl: str = "auto"

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        # Here, where every class's own arguments are seen, and partially, since copies are made without any.
        object.__setattr__(self, "arguments", _named(cls, args, kwargs))
        return self

    def __init__(self, coords: int, depth: int) -> None:
        super().__init__()
        self.coords, self.depth = arguments.whole("coords", coords), arguments.whole("depth", depth)
        # Empty: only its dtype counts. It is what a cast of the module acts on where the weights themselves stay float32.
        self.register_buffer("like", torch.empty(0), persistent=False)

    @abstractmethod
    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        """The encoding itself; positions have been checked, the output may have any floating dtype."""

    def forward(self, positions: Shaped[Tensor, "*batch coords"]) -> Float[Tensor, "*batch {self.depth}"]:
        if positions.ndim == 0 or positions.shape[-1] != self.coords:
            raise ValueError(f"positions must have shape [..., {self.coords}] (coords), got {tuple(positions.shape)}")
        if positions.dtype == torch.bool or positions.is_complex():
            raise ValueError(f"positions must be real numbers, got {positions.dtype}")
        out = self.encode(positions)
        # A smaller dtype comes from layers that have it, by autocast or FSDP2's mixed precision: it is what nn.Linear would give.
        return out.to(self._output_dtype(positions.device.type)) if out.dtype in (torch.float32, torch.float64) else out

    def _output_dtype(self, device: str) -> torch.dtype:
        dtype = self.like.dtype
        # As for nn.Linear, autocast decides where it is on, and leaves float64 alone.
        return torch.get_autocast_dtype(device) if _autocast(device) and dtype != torch.float64 else dtype

    @property
    def impl(self) -> str:
        """What computes this encoding: "torch"; "triton", the fused kernels; or "auto", these where they serve.

        Set, it holds for the encodings inside this one too. It is a choice for this process: `save_pretrained` leaves it out.
        Without effect where there is no kernel, as for tables.
        """
        return self._impl

    @impl.setter
    def impl(self, value: str) -> None:
        arguments.choice("impl", value, IMPLS)
        for module in self.modules():
            if isinstance(module, Encoding):
                module._impl = value

    def save_pretrained(self, directory: str | Path) -> None:
        """Writes `model.safetensors` and `config.json` into a directory."""
        pretrained.save(self, directory)

    @classmethod
    def from_pretrained(cls, directory: str | Path) -> Any:
        """Reads what `save_pretrained` wrote: `lff.Encoding.from_pretrained(directory)`, or any class that it is one of."""
        return pretrained.load(cls, directory)

    def extra_repr(self) -> str:
        return f"{self.coords} -> {self.depth}"


class ExactEncoding(Encoding):
    """An encoding whose own weights multiply positions, and so stay float32 when the module is cast to a smaller dtype.

    bfloat16 keeps 8 bits: it has no 513, and a frequency w rounded to it puts the phase at position 512 off by up to w radians.
    Such weights follow the module to any device and to float64, never below float32; the output follows the cast.
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        def apply(tensor: Tensor) -> Tensor:
            cast = fn(tensor)
            exact = torch.promote_types(cast.dtype, torch.float32)
            if tensor is self.like or cast.dtype == exact:
                return cast
            return tensor.to(device=cast.device, dtype=exact)

        if recurse:
            for child in self.children():
                child._apply(fn)  # type: ignore[no-untyped-call]
        super()._apply(apply, recurse=False)  # type: ignore[no-untyped-call]
        return self


def phases(
    x: Num[Tensor, "*batch m"], w: Float[Tensor, "n m"], b: Float[Tensor, " n"] | None = None
) -> Float[Tensor, "*batch n"]:
    """x W^T + b in float32, or in float64 where an operand has it.

    The products are written out, since a matrix product would be rounded: by autocast to bfloat16, by TF32 to 10 bits.
    """
    exact = exact_dtype(x, w)
    x, w = x.to(exact), w.to(exact)
    angles = x[..., :1] * w[:, 0]
    for i in range(1, w.shape[1]):
        angles = torch.addcmul(angles, x[..., i : i + 1], w[:, i])
    return angles if b is None else angles + b.to(exact)


def _named(cls: type[Encoding], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor by their names."""
    named = dict(inspect.signature(cls.__init__).bind_partial(None, *args, **kwargs).arguments)
    return {name: value for name, value in named.items() if name != "self"}


def layer_dtype(layer: nn.Linear, device: str) -> torch.dtype:
    """What a layer computes in."""
    dtype = layer.weight.dtype
    return torch.get_autocast_dtype(device) if _autocast(device) and dtype != torch.float64 else dtype


def as_input(x: Float[Tensor, "*batch n"], layer: nn.Linear) -> Float[Tensor, "*batch n"]:
    """x in the dtype that a layer takes; where autocast is on, it sees to that itself.

    They differ where something else than a cast of the module has changed the layer, as FSDP2's mixed precision does.
    """
    return x if _autocast(x.device.type) else x.to(layer.weight.dtype)


def _autocast(device: str) -> bool:
    return device != "meta" and torch.is_autocast_enabled(device)  # the meta device knows no autocast


def exact_dtype(*tensors: Tensor) -> torch.dtype:
    """float32, or float64 where a tensor has it: what angles are computed in."""
    return functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
