"""Where the kernels' time goes on a GPU, launch by launch, into results/benchmarks/kernels-cuda.json.

python benchmarks/kernels.py

Two cases of `lff bench`, both in bfloat16 with |H| = 32. The large one: 2^20 points in three dimensions to 768 outputs,
|F| = 384, LayerNorm. The small one: 12,800 boxes in groups of 4/1, 2/2 and 1/4 to 128 outputs. The profiler names every kernel of
a step; in the large case, beside each stands what it must move through memory, at the bandwidth of a copy in the same run.
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
#: Bytes that a kernel of the large case must read and write at least: positions, outputs or their gradient, hidden units.
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
    copied = 2 * N * D
    seconds = byte_floor(1, copied, _timed(copy(copied, device)))  # of one byte moved, as the floor counts them
    rows = _rows("2^20 points", _large(device), statistics.median(seconds))
    for groups in (4, 2, 1):
        rows += _rows(f"boxes {groups}/{4 // groups}", _boxes(device, groups), None)
    tables.save("kernels-cuda", {"environment": environment(device="cuda", seeds=[0]), "rows": rows})


def _large(device: torch.device) -> Callable[[], object]:
    torch.manual_seed(0)
    encode = lff.LearnableFourier(M, D, features=F, hidden=H, layer_norm=True, impl="triton").to(device)
    positions = 1024 * torch.rand(N, M, device=device)
    gradient = torch.randn(N, D, device=device, dtype=torch.bfloat16)
    return forward_backward(encode, positions, gradient, lambda: torch.autocast("cuda", torch.bfloat16))


def _boxes(device: torch.device, groups: int, *, count: int = 12_800, depth: int = 128) -> Callable[[], object]:
    torch.manual_seed(0)
    encode = lff.LearnableFourier(4, depth, groups=groups, features=depth // groups, hidden=H, impl="triton").to(device)
    positions = torch.randint(100, (count, 4), device=device).float()
    gradient = torch.randn(count, depth, device=device, dtype=torch.bfloat16)
    return forward_backward(encode, positions, gradient, lambda: torch.autocast("cuda", torch.bfloat16))


def _rows(case: str, step: Callable[[], object], second_of_a_byte: float | None) -> list[dict[str, object]]:
    """The kernels of a case, the longest first, and their sum."""
    found = [_row(case, name, times, second_of_a_byte) for name, times in _profiled(step).items()]
    found.sort(key=lambda row: -row["microseconds"])
    sums = {key: sum(row[key] or 0 for row in found) for key in ("launches", "microseconds", "floor")}
    return [*found, {"case": case, "kernel": "all", **sums, "floor": sums["floor"] or None, "ratio": None}]


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


def _row(case: str, name: str, times: list[float], second_of_a_byte: float | None) -> dict[str, object]:
    floor = 1e6 * BYTES[name] * second_of_a_byte if second_of_a_byte is not None and name in BYTES else None
    took = sum(times) / STEPS
    return {
        "case": case,
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
