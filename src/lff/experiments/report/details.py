"""What a reader needs beside the numbers: how they were made, on what, and which runs are missing."""

import json
from collections.abc import Collection, Iterable
from typing import Any

from lff.experiments.records import Comparison
from lff.experiments.report.findings import Findings

SIMILARITY = (
    "Cosine similarity of the encoding of every cell with that of the ringed cell, for nine cells of the grid; "
    "the same colours in every picture. Encodings of the first seed."
)


def curves_caption(findings: Findings, title: str, methods: Collection[str]) -> str:
    """Below the curves of some methods; the title is empty where these are all."""
    names = ", ".join(row.method for row in findings.rows if row.finished and row.method in methods)
    return (
        f"{title + ': ' if title else ''}{findings.primary.label} over the training steps for {names}: means over the finished "
        "runs; bands are 95 % t-intervals over seeds, cut where they leave the frame; a single seed has none."
    )


def sizes_caption(findings: Findings) -> str:
    """Below the figure of image sizes."""
    return (
        f"{findings.primary.label} of trained models on images of other sizes. Solid: positions rescaled into the trained "
        "extent; dashed: positions that extend beyond it; dotted: a table, interpolated. Intervals stand in the table."
    )


def notes(findings: Findings) -> list[str]:
    """How the numbers of the main table are made."""
    primary, default, m = findings.primary, findings.comparison.default, len(findings.compared)
    factor = "0.95" if primary.larger else "1.05"
    return [
        "± is half of a 95 % t-interval over the seeds. ↑: larger is better; ↓: smaller is better.",
        f"Differences to {default}, the default, pair runs of the same seed. p (paired, Holm) is a paired t-test after Holm's "
        f"correction for the {m} methods compared; p (Welch) is Welch's t-test, which does not pair, without a correction.",
        f"Steps: when {primary.name} first reaches {factor} times the default's final mean, straight between evaluations, "
        "as a mean over seeds; a secondary measure.",
        "Relative speed: steps per second over those of the default; the median ratio of neighbouring blocks in one process.",
        "A run that has not finished is left out. What cannot be computed is a dash.",
    ]


def unfinished(findings: Findings) -> list[str]:
    """A line for each run that was asked for and has no final evaluation."""
    lines = [f"{run.method}, seed {run.seed}: at step {run.step:,}" for run in findings.unfinished]
    return lines + [f"{method}, seed {seed}: not begun" for method, seed in findings.missing]


def environment(comparison: Comparison) -> list[tuple[str, str]]:
    """What the runs ran on; more than one value means that they differ."""
    records = [run.environment for run in comparison.runs]
    named = [("Device", "device"), ("Threads", "threads"), ("Commit", "commit")]
    pairs = [(name, _distinct(record.get(key) for record in records)) for name, key in named]
    packages = dict.fromkeys(package for record in records for package in record.get("versions", {}))
    pairs += [(package, _distinct(record.get("versions", {}).get(package) for record in records)) for package in packages]
    if comparison.speed:
        pairs.append(("Speed measured on", str(comparison.speed["environment"].get("device", ""))))
    return [(name, value) for name, value in pairs if value]


def _distinct(values: Iterable[object]) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value not in (None, "")))


def settings(config: dict[str, Any], before: str = "") -> list[tuple[str, str]]:
    """A nested config as pairs, the names of what is nested joined by dots."""
    pairs: list[tuple[str, str]] = []
    for key, value in config.items():
        pairs += (
            settings(value, f"{before}{key}.")
            if isinstance(value, dict)
            else [(before + key, value if isinstance(value, str) else json.dumps(value))]
        )
    return pairs
