"""Pieces of work to be timed: forward, forward and backward, a training step, each eager or as a CUDA graph; and peak memory."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from lff.experiments.bench.turns import Bench, Work

EAGER, GRAPH = "eager", "CUDA graph"
Context = Callable[[], AbstractContextManager[Any]]


def forward(module: nn.Module, inputs: Tensor, context: Context = nullcontext) -> Work:
    """A forward pass, as in training."""

    def work() -> None:
        with context():
            module(inputs)

    return work


def forward_backward(module: nn.Module, inputs: Tensor, gradient: Tensor, context: Context = nullcontext) -> Work:
    """A forward pass and a backward from a gradient that is there already."""
    parameters = list(module.parameters())

    def work() -> None:
        for parameter in parameters:
            parameter.grad = None
        with context():
            output = module(inputs)
        output.backward(gradient)

    return work


def training_step(model: nn.Module, loss: Callable[[nn.Module], Tensor], context: Context = nullcontext) -> Work:
    """A step of AdamW, which can be captured where it is on a GPU."""
    gpu = next(model.parameters()).is_cuda
    adam = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=gpu)

    def work() -> None:
        with context():
            value = loss(model)
        value.backward()  # type: ignore[no-untyped-call]
        adam.step()
        adam.zero_grad()

    return work


class Captured:
    """A piece of work as a CUDA graph: the same kernels on the same memory, launched as one.

    Args:
        work: it is kept, since what it works on must stay where it is.
    """

    def __init__(self, work: Work) -> None:
        self.work, self.graph = work, torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self.graph):
            work()

    def __call__(self) -> None:
        self.graph.replay()


def both_ways(bench: Bench, makers: dict[str, Callable[[], Work]]) -> dict[tuple[str, str], Callable[[], Work]]:
    """Every entrant eager, and on a GPU as a CUDA graph too; each is made anew."""
    ways = {(EAGER, name): make for name, make in makers.items()}
    if bench.gpu:
        ways |= {(GRAPH, name): lambda make=make: Captured(make()) for name, make in makers.items()}  # type: ignore[misc]
    return ways


def peak_memory(work: Work) -> int:
    """Bytes that a call needs at its peak beyond what is there before it, on a GPU."""
    work()
    work()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def copy(bytes: int, device: torch.device) -> Work:
    """A copy of so many bytes, which reads and writes each once."""
    source = torch.zeros(bytes, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return lambda: target.copy_(source)


def byte_floor(written: int, copied: int, seconds: list[float]) -> list[float]:
    """Seconds to write an output, at the bandwidth of copies of `copied` bytes that took `seconds`."""
    return [written * second / (2 * copied) for second in seconds]
