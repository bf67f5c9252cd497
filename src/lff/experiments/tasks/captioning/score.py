"""METEOR and SPICE of finished runs, from the captions in their records: on the machine that has Java, once for all runs."""

import json
from pathlib import Path
from typing import Any

from lff.experiments.folder import finished, reading, write
from lff.experiments.tasks.captioning import metrics


def score(folder: Path, references: metrics.References) -> list[Path]:
    """Fills in what can be computed here; gives the runs that were changed.

    Args:
        folder: of a comparison.
        references: of the judged widgets, in their order.
    """
    missing = metrics.without()
    left = {run: final for run in sorted((folder / "runs").glob("*")) if finished(run) and "captions" in (final := _final(run))}
    changed: list[Path] = []
    wanted = {run: final for run, final in left.items() if final.get("meteor") is None}
    if wanted and "meteor" not in missing:
        with metrics.Meteor() as meteor:
            for run, final in wanted.items():
                final["meteor"] = meteor(_said(final), references)
                _replace(run, final)
                changed.append(run)
    for run, final in left.items():
        if final.get("spice") is None and "spice" not in missing:
            final["spice"] = metrics.spice(_said(final), references)
            _replace(run, final)
            changed.append(run)
    return list(dict.fromkeys(changed))


def _said(final: dict[str, Any]) -> list[str]:
    captions = final["captions"]
    return [captions["texts"][number] for number in captions["of_widgets"]]


def _final(run: Path) -> dict[str, Any]:
    file = run / "metrics.jsonl"
    with reading(file):
        line: dict[str, Any] = json.loads(file.read_text().splitlines()[-1])
    return line


def _replace(run: Path, final: dict[str, Any]) -> None:
    """Another last line; the file is replaced whole."""
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines()[:-1]
    write(file, "".join(f"{line}\n" for line in [*lines, json.dumps(final)]))
