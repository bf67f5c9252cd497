"""What a benchmark leaves: a record as JSON, a line a row in a CSV file that grows from run to run, and the table of both."""

import csv
import dataclasses
import importlib.metadata
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lff.experiments.bench.entrants import PEER, peer_version
from lff.experiments.bench.row import Bar, Row
from lff.experiments.environment import environment
from lff.experiments.folder import writing

FIELDS = (
    "date", "device", "commit", "versions", "command", "case", "what", "of", "against",
    "ratio", "low", "high", "value", "base", "unit", "sense", "bar", "spread", "verdict",
)  # fmt: skip


def about(device: str) -> dict[str, Any]:
    """When, where and with what: the part of the record that is known before anything is measured."""
    found = environment(device=device)
    others = {"triton": _version("triton"), PEER: peer_version()}
    found["versions"] |= {name: version for name, version in others.items() if version}
    return {"date": datetime.now(UTC).isoformat(timespec="seconds"), "environment": found}


def flat(row: Row) -> dict[str, Any]:
    """A row as plain values."""
    values = dataclasses.asdict(row) | {"verdict": row.verdict}
    ratio, bar = row.ratio, row.bar
    values |= dict(zip(("ratio", "low", "high"), (None, None, None) if ratio is None else ratio, strict=True))
    values |= {"sense": "", "bar": None} if bar is None else {"sense": bar.sense, "bar": bar.limit}
    return values


def append(file: Path, record: dict[str, Any]) -> None:
    """Adds a record's rows to a CSV file, which is made with a header if it is not there."""
    found = record["environment"]
    versions = ", ".join(f"{package} {version}" for package, version in found["versions"].items())
    shared = {"date": record["date"], "versions": versions, **{key: found[key] for key in ("device", "commit", "command")}}
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = not file.exists()
        with file.open("a", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, FIELDS, extrasaction="ignore", lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows({**shared, **_rounded(row)} for row in record["rows"])


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows of a record, in Markdown."""
    heads = ("What", "Of", "Against", "Ratio", "95 % interval", "Measured", "Bar", "Equal runs differ by", "Verdict")
    lines, before = [heads, ("---",) * len(heads)], ""
    for row in rows:
        lines.append(_cells(row, "the same" if row["what"] == before else row["what"]))
        before = row["what"]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: dict[str, Any], what: str) -> tuple[str, ...]:
    measured = ratio = interval = ""
    if row["ratio"] is not None:
        ratio = f"{row['ratio']:.4g}"
        interval = f"{row['low']:.4g} to {row['high']:.4g}" if row["low"] < row["high"] else ""
    if row["unit"] and row["ratio"] is not None:
        measured = f"{_number(row['value'])} / {_number(row['base'])} {row['unit']}"
    bar = "" if row["bar"] is None else str(Bar(row["sense"], row["bar"]))
    spread = "" if row["spread"] is None else f"{row['spread']:.2g}"
    cells = (what, row["of"], row["against"], ratio, interval, measured, bar, spread, row["verdict"])
    return tuple(cell.replace("|", "\\|") or "-" for cell in cells)


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
