"""Where the kernels' time goes on a GPU, launch by launch, into results/benchmarks/kernels-cuda.json.

python benchmarks/kernels.py

The large case of `lff bench`: 2^20 points in three dimensions to 768 outputs in bfloat16, |F| = 384, |H| = 32, LayerNorm. The
profiler names every kernel of a step; beside each stands what it must move through memory, at the bandwidth of a copy in the
same run.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable

import tables
import torch
from torch.profiler import ProfilerActivity, profile

import lff
from lff.experiments.bench.works import byte_floor, copy, forward_backward
from lff.experiments.environment import environment

N, M, F, H, D = 2**20, 3, 384, 32, 768
STEPS = 20
#: Bytes that a kernel must read and write at least: positions, outputs or their gradient, hidden units.
BYTES = {
    "mlp_forward": 4 * N * M + 2 * N * D,
    "mlp_rows": 4 * N * M + 2 * N * D + 4 * N * H + 4 * N,
    "mlp_weights": 2 * N * D + 2 * N * H,
    "dense_weights": 4 * N * M + 2 * N * H + 4 * N,
}


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/kernels.py wants a GPU, and there is none here")
    device = torch.device("cuda")
    step = _step(device)
    found = _profiled(step)
    copied = 2 * N * D
    seconds = byte_floor(1, copied, _timed(copy(copied, device)))  # of one byte moved, as the floor counts them
    rows = [_row(name, times, statistics.median(seconds)) for name, times in found.items()]
    rows.sort(key=lambda row: -row["microseconds"])
    whole = {"kernel": "all", "launches": sum(row["launches"] for row in rows)}
    whole |= {key: sum(row[key] or 0.0 for row in rows) for key in ("microseconds", "floor")}
    record = {"environment": environment(device="cuda", seeds=[0]), "rows": [*rows, {**whole, "ratio": None}]}
    tables.save("kernels-cuda", record)


def _step(device: torch.device) -> Callable[[], object]:
    torch.manual_seed(0)
    encode = lff.LearnableFourier(M, D, features=F, hidden=H, layer_norm=True, impl="triton").to(device)
    positions = 1024 * torch.rand(N, M, device=device)
    gradient = torch.randn(N, D, device=device, dtype=torch.bfloat16)
    return forward_backward(encode, positions, gradient, lambda: torch.autocast("cuda", torch.bfloat16))


def _profiled(step: Callable[[], object]) -> dict[str, list[float]]:
    """Microseconds of every launch of every kernel over the steps, by the kernel's name."""
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    found = defaultdict(list)
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            found[_short(event.name)].append(float(event.device_time))
    return found


def _short(name: str) -> str:
    """A kernel's own name; PyTorch's, which are templates, together."""
    return name if name.isidentifier() else "PyTorch's own"


def _row(name: str, times: list[float], second_of_a_byte: float) -> dict[str, object]:
    floor = 1e6 * BYTES[name] * second_of_a_byte if name in BYTES else None
    took = sum(times) / STEPS
    return {
        "kernel": name,
        "launches": round(len(times) / STEPS),
        "microseconds": took,
        "floor": floor,
        "ratio": None if floor is None else took / floor,
    }


def _timed(work: Callable[[], object], repeats: int = 30) -> list[float]:
    """Seconds of each call."""
    work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return times


if __name__ == "__main__":
    main()
