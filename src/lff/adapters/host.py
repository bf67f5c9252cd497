"""What the adapters share: the options of a swap, and how a swapped part of a model is recognised and undone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lff.encodings.encoding import Encoding


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `lff.swap`."""

    normalize: bool | None
    class_token: str
    unseen: str
    extent: Sequence[int] | None


@dataclass(frozen=True)
class Trained:
    """A host's own table: what it adds at which positions, for `lff.fit`."""

    positions: Float[Tensor, "*batch coords"]
    table: Float[Tensor, "*batch depth"]


class Swapped:
    """Marks a module of a host that holds an encoding of ours, and knows how it was before."""

    def undo(self, parent: nn.Module, name: str) -> None:
        """Puts back what `parent.name` was; a module that was changed in place needs neither."""
        raise NotImplementedError


class Changed(Swapped):
    """A module that was changed in place: it became an instance of a subclass and lost its table, which is kept aside.

    The class is changed rather than a method, so that copies, pickles and compiled graphs see an ordinary module.
    """

    @classmethod
    def change(cls, module: nn.Module, drop: Sequence[str]) -> None:
        """Makes `module` one of ours and takes the parameters or submodules `drop` out of it."""
        kept: dict[str, nn.Parameter | nn.Module | None] = {}
        for name in drop:  # None keeps the place, so that an undone model has its parameters in their order
            slots: dict[str, Any] = module._parameters if name in module._parameters else module._modules
            kept[name], slots[name] = slots[name], None
        module.__dict__.update(_host=type(module), _kept=(kept,))
        module.__class__ = cls  # type: ignore[assignment]

    def undo(self, parent: nn.Module, name: str) -> None:
        assert isinstance(self, nn.Module)
        del self._modules["position"]
        like = next(self.parameters())
        (kept,) = self.__dict__.pop("_kept")
        self.__class__ = self.__dict__.pop("_host")
        for key, value in kept.items():
            slots: dict[str, Any] = self._parameters if key in self._parameters else self._modules
            slots[key] = moved(value, like)


def moved(value: nn.Parameter | nn.Module, like: Tensor) -> nn.Parameter | nn.Module:
    """What was kept aside, on the device and in the dtype that the model has by now."""
    if isinstance(value, nn.Module):
        return value.to(like.device, like.dtype)
    value.data = value.data.to(like.device, like.dtype)
    return value


def settle(encoding: Encoding, model: nn.Module, like: Tensor | None = None) -> Encoding:
    """The encoding on the device, in the dtype and in the mode of the model that it goes into."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0)) if like is None else like
    return encoding.to(like.device, like.dtype).train(model.training)


def check(encoding: Encoding, *, depth: int, coords: int, host: str) -> None:
    """That an encoding fits, before anything is changed."""
    if encoding.depth != depth:
        raise ValueError(f"encoding must have depth {depth}, the width of {host}, got {encoding.depth}")
    if encoding.coords != coords:
        raise ValueError(f"encoding must take {coords} coordinates in {host}, got one that takes {encoding.coords}")
