"""What training at the paper's size would cost, from the steps of benchmarks/reformer.py on one GPU: an extrapolation."""

from collections.abc import Sequence
from typing import Any

PICTURES, STEPS, RUNS = 256, 100_000, 30  # of a step; of a run; ten methods with three seeds
GPUS = (1, 8, 64)


def costs(rows: Sequence[dict[str, Any]], gpus: Sequence[int] = GPUS) -> list[dict[str, Any]]:
    """A row for each number of GPUs: the seconds of a step, the hours of a run and the days of all runs of a comparison.

    A GPU has its share of the 256 pictures, at the most pictures per second of our rows whose batch divides the share: several
    of them after each other where it is larger. Where the share is smaller than any batch, the time of the smallest batch is
    taken in proportion, which flatters. Exchanging gradients is not in it; nor is the loading of pictures.

    Args:
        rows: of the record: "what", "batch" and "milliseconds", the last None where a step failed.
        gpus: how many there are.
    """
    ours = [row for row in rows if row["milliseconds"] and ", ours, compiled" in row["what"]]
    found = []
    for count in gpus if ours else ():
        share = PICTURES // count
        fitting = [row for row in ours if share % row["batch"] == 0] or [min(ours, key=lambda row: int(row["batch"]))]
        best = min(fitting, key=lambda row: float(row["milliseconds"]) / int(row["batch"]))
        seconds = best["milliseconds"] / 1000 / best["batch"] * share
        hours = seconds * STEPS / 3600
        found.append(
            {"gpus": count, "share": share, "from": best["what"], "step": seconds, "hours": hours, "days": hours * RUNS / 24}
        )
    return found
