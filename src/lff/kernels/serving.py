"""Where the kernels serve, and how many programs a device runs at once."""

import functools
import importlib.util
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor

#: Looked up, not imported: that takes longer than all of this library.
INSTALLED = importlib.util.find_spec("triton") is not None
#: Triton's interpreter, which runs the kernels on the CPU, is for tests: it must be chosen before Triton is imported.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

#: Types of devices whose tensors the kernels may take.
DEVICES = ("cuda", "cpu") if INTERPRETED else ("cuda",)
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

Function = TypeVar("Function", bound=Callable[..., object])


def as_constant(function: Function) -> Function:
    """While torch.compile traces, the function is run, not traced: what `torch.compiler.assume_constant_result` asks for.

    That one would import the compiler.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def obstacle(*tensors: Tensor | None, dtype: torch.dtype = torch.float32) -> str | None:
    """Why the kernels cannot take these tensors and give an output of this dtype; None where they can.

    Takes positions and weights in any order; positions may also be integers.
    """
    if not INSTALLED:
        return "Triton is not installed"
    given = [tensor for tensor in tensors if tensor is not None]
    for device in {tensor.device for tensor in given}:
        reason = _obstacle_of(device)
        if reason is not None:
            return reason
    for tensor in given:
        if tensor.dtype not in DTYPES and tensor.is_floating_point():
            return f"the kernels compute in float32, got {tensor.dtype}"
    return None if dtype in DTYPES else f"the kernels give float32, bfloat16 or float16, not {dtype}"


def require(*tensors: Tensor | None, dtype: torch.dtype) -> None:
    """Raises a ValueError where there is an obstacle."""
    reason = obstacle(*tensors, dtype=dtype)
    if reason is not None:
        raise ValueError(f'{reason}; use impl="torch"')


@as_constant
def _obstacle_of(device: torch.device) -> str | None:
    return _looked_up(device)


@functools.cache
def _looked_up(device: torch.device) -> str | None:
    if device.type == "cpu" and INTERPRETED:
        return None
    if device.type != "cuda":
        return f"Triton needs tensors on a CUDA device, got {device.type}"
    if torch.version.hip is not None:
        return "the kernels are written for NVIDIA's GPUs"
    if torch.cuda.is_available():  # otherwise these are fake tensors
        major = int(_properties(device).major)
        if major < 8:
            return f"the kernels need a GPU of compute capability 8.0 or later, got {major}.x"
    return None


def programs(device: torch.device) -> int:
    """How many programs a device runs at once, one on each of its multiprocessors; a number for tests in the interpreter."""
    return int(_properties(device).multi_processor_count) if device.type == "cuda" else 4


@functools.cache
def _properties(device: torch.device) -> Any:
    return torch.cuda.get_device_properties(device)


def on(x: Tensor) -> AbstractContextManager[object]:
    """Makes a tensor's GPU the current one, where Triton launches."""
    return torch.cuda.device(x.device) if x.is_cuda and x.device.index != torch.cuda.current_device() else nullcontext()
