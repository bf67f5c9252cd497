"""Functions on the kernels as PyTorch operators, without the price of one where nobody looks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

#: What arguments are where nobody has wrapped a tensor.
PLAIN = frozenset((Tensor, nn.Parameter, type(None), bool, int, float, torch.dtype))


class Operator:
    """An operator of `torch.library` for whoever traces or wraps it; for anyone else the function itself.

    PyTorch's way to an operator that is written in Python takes several times as long as a small kernel. Of one that can be
    differentiated, a call gives the first output; the others are for its backward.

    Args:
        name: "lff::" and its name.
        function: takes and gives tensors; launches kernels.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        self.op: Any = torch.library.custom_op(name, function, mutates_args=())
        self._differentiable: Any = None

    def __call__(self, *arguments: Any) -> Any:
        if not plain(*arguments):
            found = self.op(*arguments)
        elif not torch.is_grad_enabled():
            found = self.function(*arguments)
        elif self._differentiable is not None:
            return self._differentiable.apply(*arguments)
        else:
            found = self.op(*arguments)
        return found[0] if self._differentiable is not None and isinstance(found, tuple) else found

    def register_fake(self, function: Callable[..., Any]) -> None:
        """Shapes and dtypes alone, for tracing."""
        self.op.register_fake(function)

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., None] | None = None) -> None:
        """As `torch.library.register_autograd`."""
        self.op.register_autograd(backward, setup_context=setup_context)
        if setup_context is not None:
            self._differentiable = _differentiable(self.function, backward, setup_context)


def operator(name: str) -> Callable[[Callable[..., Any]], Operator]:
    """Decorates the function of an `Operator`."""
    return lambda function: Operator(name, function)


def plain(*arguments: Any) -> bool:
    """Whether nobody traces, transforms or counts what happens to these arguments."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and all(map(PLAIN.__contains__, map(type, arguments)))
    )


def _differentiable(function: Callable[..., Any], backward: Callable[..., Any], setup: Callable[..., None]) -> Any:
    def forward(ctx: Any, *inputs: Any) -> Any:
        output = function(*inputs)
        setup(ctx, inputs, output)
        return output[0] if isinstance(output, tuple) else output  # one is less to wrap than four

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(function.__name__, (torch.autograd.Function,), members)
