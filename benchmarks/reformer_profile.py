"""Where the time of a step goes on its device, by groups of kernels; for benchmarks/reformer.py."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

#: Words in the names of kernels, or of operators on a CPU; the first group that has one of them takes it. A fused kernel that
#: gathers and computes is among those that gather.
GROUPS = {
    "products": (
        "gemm", "cutlass", "nvjet", "xmma", "cublas", "triton_tem", "::mm", "::bmm", "addmm", "linear", "matmul", "einsum",
    ),
    "sorting": ("sort", "radix", "gather", "scatter", "index"),
    "elementwise": (
        "elementwise", "copy", "memcpy", "memset", "triton_", "reduce", "softmax", "norm", "cat", "aten::", "fill", "adam",
        "multi_tensor",
    ),
}  # fmt: skip
LARGEST = 12


def group(name: str) -> str:
    """Of a kernel: products, sorting, elementwise or rest."""
    return next((key for key, words in GROUPS.items() if any(word in name.lower() for word in words)), "rest")


def profiled(what: str, step: Callable[[], None], wait: Callable[[], None], device: torch.device) -> dict[str, Any]:
    """Milliseconds of device time of one step, by group, and those of the largest kernels."""
    cuda = device.type == "cuda"
    kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=kinds) as found:
        step()
        wait()
    times: dict[str, float] = {}
    calls = 0
    for event in found.key_averages():
        # An operator has the time of its kernels, and an annotation that of all inside: counted here are kernels alone.
        if getattr(event, "is_user_annotation", False) or event.key.startswith(("##", "Optimizer.", "ProfilerStep")):
            continue
        if event.device_type == (DeviceType.CUDA if cuda else DeviceType.CPU):
            milliseconds = (event.self_device_time_total if cuda else event.self_cpu_time_total) / 1000
            times[event.key] = times.get(event.key, 0.0) + milliseconds
            calls += event.count
    total = sum(times.values())
    groups = {key: sum(ms for name, ms in times.items() if group(name) == key) for key in (*GROUPS, "rest")}
    largest = sorted(times.items(), key=lambda item: -item[1])[:LARGEST]
    return {
        "what": what,
        "total": total,
        "calls": calls,
        **groups,
        **{f"{key}_share": f"{100 * ms / total:.0f} %" for key, ms in groups.items()},
        "largest": [[name[:120], round(ms, 3)] for name, ms in largest],
    }
