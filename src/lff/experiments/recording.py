"""Steps as a CUDA graph: recorded once, then replayed, so that a small model is not slowed by the processor's launches."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

PLAIN = 3  # steps before the recorded one: they compile what is compiled, and make what is made once, as an optimiser's moments


class Recorded:
    """A function of batches on a GPU that gives a tensor; every call is one step, the plain ones at first too.

    Nothing in it may wait for the GPU, and nothing may depend on the processor but the batches, whose shapes stay the same.

    Args:
        function: of batches, which are tuples of tensors.
    """

    def __init__(self, function: Callable[[Sequence[Any]], Tensor]) -> None:
        self._function, self._plain = function, PLAIN
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, batches: Sequence[Any]) -> Tensor:
        if self._plain:
            self._plain -= 1
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                found = self._function(batches)
            torch.cuda.current_stream().wait_stream(self._stream)
            return found
        if self._graph is None:
            self._inputs = [type(batch)(*(tensor.clone() for tensor in batch)) for batch in batches]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self._stream):
                self._found = self._function(self._inputs)
            self._graph = graph
        for kept, given in zip(self._inputs, batches, strict=True):
            for into, tensor in zip(kept, given, strict=True):
                into.copy_(tensor)
        self._graph.replay()
        return self._found.clone()
