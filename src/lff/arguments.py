"""Checks of arguments: each returns the value, or raises a ValueError that names it, what came and what was expected."""

import math
from collections.abc import Callable, Collection, Sequence
from numbers import Integral
from typing import cast

import torch
from torch import Tensor


def whole(name: str, value: object, *, least: int = 1) -> int:
    """An integer of at least `least`; True and 3.0 are refused, since they are more often a slip than a size."""
    if isinstance(value, torch.SymInt):  # a size that is left open while a model is exported
        return cast(int, value)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def scales(name: str, value: object) -> float | tuple[float, float]:
    """A positive number, or a pair of them, the smaller first."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return positive(name, value)
    if len(value) != 2 or not 0 < positive(f"{name}[0]", value[0]) <= positive(f"{name}[1]", value[1]):
        raise ValueError(f"{name} must be a positive number or a pair of them, the smaller first, got {value!r}")
    return float(value[0]), float(value[1])


def probability(name: str, value: object) -> float:
    """A share that leaves something: 0 <= value < 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(f"{name} must be in [0, 1), got {value!r}")
    return float(value)


def choice(name: str, value: str, options: Collection[str]) -> str:
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def multiple(name: str, value: int, of: int, why: str) -> int:
    whole(name, value)
    if value % of:
        below = value - value % of
        near = f"{below} or {below + of}" if below else f"{of}"
        raise ValueError(f"{name} must be a multiple of {of} ({why}), got {value}; the nearest is {near}")
    return value


def sizes(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """The size along every axis: 512 or (14, 14)."""
    axes: tuple[object, ...] = tuple(value) if isinstance(value, Sequence) else (value,)
    if not axes:
        raise ValueError(f"{name} must have at least one axis, got {value!r}")
    return tuple(whole(f"{name}[{axis}]", size) for axis, size in enumerate(axes))


def require(ok: Tensor, message: Callable[[], str]) -> None:
    """Raises a ValueError where the data breaks a rule, or asserts it on the device where the data cannot be looked at.

    In a compiled or exported graph a Python exception that depends on data cannot exist, hence the assertion there; nor can it in
    a CUDA graph while that is recorded.
    """
    if torch.compiler.is_compiling() or ok.is_meta or (ok.is_cuda and torch.cuda.is_current_stream_capturing()):
        torch._assert_async(ok, "a value is outside of what is allowed; run without compiling to see which")
    elif not ok:
        raise ValueError(message())
