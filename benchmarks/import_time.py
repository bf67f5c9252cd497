"""How long `import lff` takes beside the `import torch` that it contains, and which heavy modules it loads.

    python benchmarks/import_time.py

Every import has a fresh process, and the two take turns. Exits 1 where `import lff` loads one of the heavy modules. A minute.
"""

import subprocess
import sys
from statistics import median

import tables

from lff.experiments.environment import environment

REPEATS = 10
HEAVY = ("tyro", "transformers", "timm", "torchvision", "lightning_fabric", "matplotlib")


def seconds(module: str) -> float:
    """The time that one import takes in a fresh process, the interpreter's own start not counted."""
    return float(in_fresh_process(f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"))


def loads(module: str) -> list[str]:
    """The heavy modules that importing this one brings in."""
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    return in_fresh_process(code).split()


def in_fresh_process(code: str) -> str:
    """What Python code prints when it is run in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def main() -> None:
    modules = ("torch", "lff")
    loaded = {module: loads(module) for module in modules}  # first, so that the files are in the system's cache
    times: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(REPEATS):
        for module in modules:
            times[module].append(seconds(module))
    medians = {module: median(times[module]) for module in modules}
    rows = [
        {
            "module": module,
            "seconds": medians[module],
            "ratio": medians[module] / medians["torch"],
            "loads": loaded[module],
            "times": times[module],
        }
        for module in modules
    ]
    tables.save("import-time", {"environment": environment(), "rows": rows})
    if loaded["lff"]:
        sys.exit(f"import lff loads {', '.join(loaded['lff'])}")


if __name__ == "__main__":
    main()
