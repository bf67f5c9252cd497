"""Reads the folder that a comparison leaves behind: what was asked for, its runs line by line, and the timings."""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lff.experiments.measures import Measure

INITIAL, FINAL = "checkpoint/encoding-initial", "checkpoint/encoding-final"


@dataclass(frozen=True)
class Run:
    """One method with one seed; `final` is None until the run has finished."""

    method: str
    seed: int
    config: dict[str, Any]
    environment: dict[str, Any]
    curve: list[dict[str, Any]]
    training: list[dict[str, Any]]
    final: dict[str, Any] | None
    folder: Path

    @property
    def step(self) -> int:
        """The last step that left a line."""
        lines = [*self.training, *self.curve, *([self.final] if self.final else [])]
        return max((int(line["step"]) for line in lines), default=0)

    def value(self, key: str) -> float:
        """A measure of the final evaluation; nan where the run diverged and has none."""
        if self.final is None or key not in self.final:
            raise ValueError(f"{self.folder / 'metrics.jsonl'} must end with a final line that has {key!r}, got {self.final}")
        return _number(self.final[key])

    def points(self, key: str) -> dict[int, float]:
        """A measure over the steps, the final evaluation included where it comes after the others."""
        lines = [*self.curve, *([self.final] if self.final and self.final["step"] not in {e["step"] for e in self.curve} else [])]
        return {int(line["step"]): _number(line[key]) for line in lines if key in line}

    def sizes(self, key: str) -> list[tuple[str, float, float]]:
        """A measure at other image sizes: how they were asked for, the scale, the value."""
        entries = (self.final or {}).get("sizes", [])
        return [(entry["asked"], float(entry["scale"]), _number(entry[key])) for entry in entries if key in entry]


@dataclass(frozen=True)
class Comparison:
    """A folder of runs; `about` is its compare.json, `speed` its speed.json where there is one."""

    folder: Path
    about: dict[str, Any]
    runs: list[Run]
    speed: dict[str, Any] | None

    @property
    def measures(self) -> list[Measure]:
        """The first is the primary one; others count where the runs measured them."""
        primary, *others = (Measure(**measure) for measure in self.about["measures"])
        ended = [run.final for run in self.runs if run.final is not None]
        return [primary, *(measure for measure in others if not ended or any(measure.key in final for final in ended))]

    @property
    def default(self) -> str:
        return str(self.about["default"])

    @property
    def role(self) -> str:
        """What the default is in this reading: the host's own, or what was asked for instead."""
        return str(self.about.get("role", "default"))

    @property
    def methods(self) -> list[str]:
        """Those that were asked for, then any others with runs in the folder."""
        return list(dict.fromkeys([*self.about["methods"], *(run.method for run in self.runs)]))

    @property
    def seeds(self) -> list[int]:
        return sorted({*self.about["seeds"], *(run.seed for run in self.runs)})

    def finished(self, method: str) -> list[Run]:
        return [run for run in self.runs if run.method == method and run.final is not None]

    def values(self, method: str, key: str) -> dict[int, float]:
        """A final measure of the method's finished runs, by seed; without those that could not compute one beside the primary."""
        left_out = [] if key == self.about["measures"][0]["key"] else [None]
        return {run.seed: run.value(key) for run in self.finished(method) if (run.final or {}).get(key, key) not in left_out}


def read(folder: str | Path, against: str | None = None) -> Comparison:
    """Reads a comparison; runs come in the order of the methods and then of the seeds.

    A file that is missing or damaged raises a ValueError that names it. A run that was just begun, or killed in that moment, has
    not all its files yet, and the last line of metrics.jsonl may be cut short, as it is while a run writes it: none is an error.

    Args:
        folder: of the comparison.
        against: the method to compare with instead of the comparison's default.
    """
    folder = Path(folder)
    about = _object(folder / "compare.json", ("task", "methods", "seeds", "default", "measures"))
    _check(folder / "compare.json", about)
    if against is not None:
        if against not in about["methods"]:
            raise ValueError(f"the method to compare with must be one of {', '.join(about['methods'])}, got {against!r}")
        about["role"] = "default" if against == about["default"] else "compared with"
        about["default"] = against
    runs = [_run(path) for path in sorted((folder / "runs").glob("*")) if (path / "config.json").exists()]
    order = list(dict.fromkeys([*about["methods"], *(run.method for run in runs)]))
    runs.sort(key=lambda run: (order.index(run.method), run.seed))
    for one, other in itertools.pairwise(runs):
        if (one.method, one.seed) == (other.method, other.seed):
            raise ValueError(
                f"{other.folder} must have another method or seed than {one.folder}, got {one.method}, seed {one.seed}, in both"
            )
    speed = folder / "speed.json"
    return Comparison(folder, about, runs, _object(speed, ("environment", "rows")) if speed.exists() else None)


def _check(path: Path, about: dict[str, Any]) -> None:
    try:
        measures = [Measure(**measure) for measure in about["measures"]]
    except TypeError as broken:
        raise ValueError(
            f"{path} must have measures with key, label, scale, digits and larger, got {about['measures']}"
        ) from broken
    if not measures:
        raise ValueError(f"{path} must have at least one measure, got none")


def _run(folder: Path) -> Run:
    config = _object(folder / "config.json", ("method", "seed"))
    environment = _object(folder / "environment.json", ()) if (folder / "environment.json").exists() else {}
    lines = _lines(folder / "metrics.jsonl") if (folder / "metrics.jsonl").exists() else []
    # A run that went on from a checkpoint may repeat steps: the later line counts.
    by_kind: dict[str, dict[int, dict[str, Any]]] = {"train": {}, "evaluation": {}, "final": {}}
    for line in lines:
        by_kind[line["kind"]][int(line["step"])] = line
    train, curve, final = ([kind[step] for step in sorted(kind)] for kind in by_kind.values())
    return Run(config["method"], int(config["seed"]), config, environment, curve, train, final[-1] if final else None, folder)


def _object(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    expected = f"a JSON object{' with ' + ', '.join(keys) if keys else ''}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        raise ValueError(f"{path} is missing; expected {expected}") from missing
    except ValueError as broken:
        raise ValueError(f"{path} must be {expected}, got {broken}") from broken
    if not isinstance(content, dict) or any(key not in content for key in keys):
        got = f"keys {', '.join(content)}" if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} must be {expected}, got {got}")
    return content


def _lines(path: Path) -> list[dict[str, Any]]:
    *whole, last = path.read_bytes().split(b"\n")
    lines = []
    for number, text in enumerate([*whole, last], start=1):
        try:
            line = json.loads(text)
            if not isinstance(line["step"], int) or line["kind"] not in ("train", "evaluation", "final"):
                raise ValueError(f"kind {line['kind']!r} and step {line['step']!r}")
            lines.append(line)
        except (ValueError, KeyError, TypeError) as broken:
            if number <= len(whole):  # the last has no end yet: it is being written, or was when the run was killed
                raise ValueError(
                    f"{path}, line {number}, must be an object with kind (train, evaluation or final) and step, got {broken!r}"
                ) from broken
    return lines


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
