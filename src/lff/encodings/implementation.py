"""Which implementation computes an encoding: plain torch, or the fused kernels where they serve and nobody would miss a call."""

import warnings

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.autograd import forward_ad
from torch.nn.modules.module import _has_any_global_hook

from lff import kernels
from lff.kernels.serving import as_constant

IMPLS = ("auto", "torch", "triton")
#: The reasons that this process has been told.
SAID: set[str] = set()
#: Tensors that hold their own numbers, or stand for such a one while a graph is made. Sharded and quantised ones do not.
PLAIN = (Tensor, nn.Parameter, FakeTensor, FunctionalTensor)


def fused(impl: str, *tensors: Tensor | None, dtype: torch.dtype, unless: str | None = None) -> bool:
    """Whether the kernels compute this.

    Where they cannot, torch does, and whoever asked for the kernels or has a GPU is told the reason, once a process. On a CPU
    nobody is, unless asked for.

    Args:
        impl: what the encoding was told.
        tensors: positions and weights, the positions first.
        dtype: what the kernels would have to give.
        unless: a reason against them that the caller knows.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    device = given[0].device
    if impl == "torch" or device.type == "meta" or any(tensor.device != device for tensor in given):
        return False  # torch says itself what is wrong with two devices
    if impl == "auto" and torch.compiler.is_exporting():
        return False  # a graph that leaves this process must run where there are no kernels
    reason = unless or _strange(given) or kernels.obstacle(*given, dtype=dtype)
    if reason is not None and (impl == "triton" or device.type == "cuda"):
        _say(reason)
    return reason is None


def hooked(module: nn.Module) -> bool:
    """Whether a call of the module does more than its class says: then it must be called."""
    hooks = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(hooks or "forward" in module.__dict__ or _has_any_global_hook())  # type: ignore[no-untyped-call]


@as_constant
def transformed() -> bool:
    """Inside a transform of torch.func, such as vmap or jvp."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def _strange(tensors: list[Tensor]) -> str | None:
    """What the kernels have no rule for."""
    if transformed() or forward_ad._current_level >= 0:
        return "the kernels have no rules for torch.func and forward-mode derivatives"
    if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return "the kernels are unknown to TorchScript"
    other = next((tensor for tensor in tensors if type(tensor) not in PLAIN), None)
    return None if other is None else f"the kernels take plain tensors, got a {type(other).__name__}"


@as_constant
def _say(reason: str) -> None:
    if reason not in SAID:
        SAID.add(reason)
        message = f'the fused kernels are not used ({reason}); plain torch computes the same. impl="torch" asks for that'
        warnings.warn(message, stacklevel=3)
