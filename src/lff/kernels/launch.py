"""Launches kernels: by Triton's own way the first time, and by what that has compiled from then on."""

import functools
import operator
from collections.abc import Callable
from typing import Any

from torch import Tensor

#: Keeps what a launch is made from, for as many sizes as a program is likely to meet.
remembered = functools.lru_cache(maxsize=1024)


class Launch:
    """A kernel with all that is known before its tensors are.

    Triton's `kernel[grid](...)` binds every argument to its name, looks at each, and looks up what it has compiled for such ones:
    that takes several times as long as a small kernel. It does so for the first launch, which gives what was compiled. Launches
    after that go there at once, if what Triton looked at has not changed: numbers are part of the launch, the dtypes of tensors
    are the same by the caller's word, and whether addresses are multiples of 16 is asked.

    Args:
        kernel: a function of tensors, then numbers, then what it is compiled for.
        grid: how many programs, along one axis to three.
        numbers: those after the tensors.
        constants: what it is compiled for, by name, and options of Triton.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], *numbers: int, **constants: Any) -> None:
        self.kernel, self.grid, self.numbers, self.constants = kernel, (*grid, 1, 1)[:3], numbers, constants
        self._compiled: Callable[..., None] | None = None
        self._rest: tuple[Any, ...] = ()

    def __call__(self, *tensors: Tensor) -> None:
        addresses = [tensor.data_ptr() for tensor in tensors]
        aligned = functools.reduce(operator.or_, addresses) % 16 == 0
        if aligned and self._compiled is not None:
            self._compiled(*addresses, *self._rest)
            return
        compiled = self.kernel[self.grid](*tensors, *self.numbers, **self.constants)
        if aligned and compiled is not None:  # the interpreter compiles nothing
            self._rest = (*self.numbers, *(self.constants[name] for name in self.kernel.arg_names if name in self.constants))
            self._compiled = compiled[self.grid]
