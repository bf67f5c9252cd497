"""Positions that all batches share, a grid above all: encoded once a batch, and while a model evaluates once for all of them.

That is so on a CPU. On a GPU they are encoded once a batch in evaluation too: to see that no weight has changed, the processor
would have to wait for the GPU, and the fused kernel takes less than that.

What was encoded is given again only where the same would come out. Weights are compared with copies of them, bit by bit: PyTorch
counts the changes of a tensor, but not those through `.data`, by which averaged weights are often put in. All else that decides
is the key: what was asked for, settings of the modules, shapes, dtypes, autocast, rounding of products.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from lff.encodings.implementation import hooked, transformed

MOST = 4  # results that are kept: a model with several feature maps asks for as many in turn
#: Modules whose output in evaluation is decided by their tensors and plain attributes. What others do is not known.
KNOWN = ("lff.adapters.", "lff.encodings.", "torch.nn.modules.")
PLAIN = (bool, int, float, str, tuple, type(None))


class Kept(dict[tuple[Any, ...], tuple[Tensor, Tensor, int]]):
    """Results by their keys, with the bytes that they came from and the number of changes they had. A copy of it is empty."""

    def __reduce__(self) -> tuple[type["Kept"], tuple[()]]:
        return Kept, ()


def remembered(holder: nn.Module, make: Callable[[], Tensor], rows: int, *asked: object) -> Tensor:
    """`make()`, or what it gave before, in evaluation mode and without gradients.

    Args:
        holder: the module whose parameters, submodules and plain attributes, with `asked`, decide what is made. It remembers.
        make: makes it.
        rows: how many positions are encoded.
        asked: what the holder was asked for, numbers or tensors.
    """
    if torch.compiler.is_compiling():
        return make()
    if torch.is_grad_enabled() or holder.training:
        holder.__dict__.pop("_kept", None)
        return make()
    modules = list(holder.modules())
    held = [tensor for module in modules for tensor in (*module._parameters.values(), *module._buffers.values())]
    tensors = [*(value for value in asked if isinstance(value, Tensor)), *held]
    given = [tensor for tensor in tensors if tensor is not None]
    if not _worthwhile(holder, given, rows) or not _evaluating(given) or any(_unknown(m, m is holder) for m in modules):
        holder.__dict__.pop("_kept", None)
        return make()
    key = (
        tuple(value for value in asked if not isinstance(value, Tensor)),
        tuple((type(module), *_settings(module)) for module in modules),
        tuple(None if tensor is None else (tensor.shape, tensor.dtype) for tensor in tensors),
        *_surroundings(),
    )
    content = torch.cat([tensor.detach().reshape(-1).view(torch.uint8) for tensor in given])
    kept: Kept = holder.__dict__.get("_kept", Kept())
    if key in kept:
        was, made, changes = kept[key]
        if made._version == changes and torch.equal(was, content):  # whoever was given it may have written to it
            return made
    with torch.inference_mode(False), torch.no_grad():  # what is made in inference mode does not count its changes
        made = make()
    if made.is_inference():  # weights that were made there
        return made
    others = [entry for entry in kept.items() if entry[0] != key]
    holder.__dict__["_kept"] = Kept([*others[1 - MOST :], (key, (content, made, made._version))])
    return made


def _worthwhile(holder: nn.Module, tensors: list[Tensor], rows: int) -> bool:
    """Whether to compare takes less than to encode, which for a table it does not."""
    encoding: Any = holder.encoding
    return bool(tensors) and sum(tensor.numel() for tensor in tensors) < rows * encoding.depth


def _evaluating(tensors: list[Tensor]) -> bool:
    """Whether nothing is transformed, traced or recorded, and all tensors are plain ones on the CPU.

    On a GPU to compare is to wait for it, which takes longer than the kernel that encodes a grid.
    """
    if (
        transformed()
        or forward_ad._current_level >= 0
        or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
    ):
        return False
    return all(type(t) in (Tensor, nn.Parameter) and t.device.type == "cpu" and t.layout == torch.strided for t in tensors)


def _unknown(module: nn.Module, holder: bool) -> bool:
    """Whether a module is random, has something hooked to it, or may depend on what is not seen here."""
    if module.training or not type(module).__module__.startswith(KNOWN) or (hooked(module) and not holder):
        return True
    return any(not isinstance(value, (*PLAIN, dict, set)) for value in module.__dict__.values())


def _settings(module: nn.Module) -> tuple[tuple[str, object], ...]:
    return tuple((name, value) for name, value in module.__dict__.items() if isinstance(value, PLAIN))


def _surroundings() -> tuple[object, ...]:
    """What PyTorch is told for all modules."""
    backends: Any = torch.backends
    precision = (backends.fp32_precision, backends.mkldnn.matmul.fp32_precision)
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), precision
