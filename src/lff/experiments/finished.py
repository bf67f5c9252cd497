"""A finished run that kept its weights, for what is done with it afterwards."""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from safetensors import safe_open
from torch import Tensor

from lff.experiments.config import Config
from lff.experiments.folder import WEIGHTS, reading
from lff.experiments.methods import Row, parse
from lff.experiments.problems import Problem

C = TypeVar("C", bound=Config)


class Finished(NamedTuple):
    """What a run has left."""

    #: All that its config.json says.
    about: dict[str, Any]
    #: Its method, as a model is built from it.
    row: Row
    weights: dict[str, Tensor]
    #: What `Task.spells` gave.
    words: dict[str, str]


def load(run: Path, task: str) -> Finished:
    """Reads a run's folder; what is not one of a finished run of the task is refused."""
    _wanted(run / "config.json", task)
    with reading(run / "config.json"):
        about = json.loads((run / "config.json").read_text(encoding="utf-8"))
    if about.get("task") != task:
        raise Problem(f"{run} must be a run of {task}, got one of {about.get('task')}")
    _wanted(run / WEIGHTS, task)
    try:
        with safe_open(run / WEIGHTS, "pt") as kept:
            weights = {key: kept.get_tensor(key) for key in kept.keys()}  # noqa: SIM118, it is no dict
            words = kept.metadata() or {}
    except Exception as error:  # whatever a damaged file makes of it
        raise Problem(f"{run / WEIGHTS} cannot be read: {str(error) or type(error).__name__}") from error
    return Finished(about, parse(about["method"]).without_loss(), weights, words)


def settings(kind: type[C], about: dict[str, Any], **others: Any) -> C:
    """The config of a record, which says more than that and, being JSON, has lists for tuples; others take precedence."""
    known = {field.name for field in dataclasses.fields(kind)}
    found: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in about.items() if key in known}
    return kind(**found | others)


def _wanted(file: Path, task: str) -> None:
    if not file.is_file():
        wanted = f"the folder of a finished run of {task}, runs/METHOD--seed-N, trained without --no-keep"
        raise Problem(f"{file} is missing; expected {wanted}")
