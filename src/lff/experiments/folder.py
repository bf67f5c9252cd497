"""The folder of a run: what it is (config.json), where it ran (environment.json), what it found (metrics.jsonl), how it goes on.

Every file but metrics.jsonl is replaced whole, so that a run that is killed leaves each as it was before or as it is after. A
checkpoint notes how long metrics.jsonl was: what a killed run wrote after its last checkpoint is cut off and written again.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from lff.experiments.config import differences
from lff.experiments.problems import Problem

FAILURE = "failure.json"
WEIGHTS = "checkpoint/model.safetensors"


class RunFolder:
    """One run on disk.

    Args:
        path: made if it is not there.
        config: what the run is; a folder that holds another run is refused.
    """

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self._checkpoint = path / "checkpoint" / "last.pt"
        with writing(path):
            (path / "checkpoint").mkdir(parents=True, exist_ok=True)
        check_same(path / "config.json", config)

    def finished(self) -> bool:
        return finished(self.path)

    def append(self, record: dict[str, Any]) -> None:
        """One line of metrics."""
        with writing(self.metrics), self.metrics.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def save(self, state: dict[str, Any]) -> None:
        """A checkpoint: tensors and plain values, with the length that metrics.jsonl has now."""
        with writing(self.metrics), self.metrics.open("a") as file:
            os.fsync(file.fileno())
            length = file.tell()
        _save(self._checkpoint, {**state, "metrics": length})

    def load(self) -> dict[str, Any] | None:
        """The last checkpoint, after metrics.jsonl was cut to what it was then; None at the very start."""
        if not self._checkpoint.exists():
            self.metrics.unlink(missing_ok=True)
            return None
        try:
            state: dict[str, Any] = torch.load(self._checkpoint, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever a damaged file makes of it
            raise Problem(f"{self._checkpoint} cannot be read ({error}); delete it to begin the run again") from error
        os.truncate(self.metrics, state["metrics"])
        return state

    def drop_checkpoint(self) -> None:
        """A finished run does not go on."""
        self._checkpoint.unlink(missing_ok=True)

    def keep(self, weights: dict[str, Tensor], words: dict[str, str]) -> None:
        """Weights for what is done with a finished run, and words that belong to them."""
        file = self.path / WEIGHTS
        if weights:
            with writing(file):
                partial = file.with_suffix(".partial")
                whole = {key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in weights.items()}
                save_file(whole, partial, words or None)  # tied weights are there under each of their names
                partial.replace(file)

    def fail(self, about: dict[str, Any], state: dict[str, Any]) -> None:
        """Keeps what is known of a run that diverged; `about` says "what"."""
        _save(self.path / "failure.pt", state)
        write(self.path / FAILURE, json.dumps(about))

    def forget_failure(self) -> None:
        (self.path / FAILURE).unlink(missing_ok=True)


def finished(path: Path) -> bool:
    """Whether a run's last line is its final evaluation."""
    metrics = path / "metrics.jsonl"
    if not metrics.exists():
        return False
    last = metrics.read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
    return last.startswith(b'{"kind": "final"') and last.endswith(b"}")


def failure(path: Path) -> str | None:
    """What went wrong with a run that diverged. It would diverge again: nothing but `lff train` tries."""
    file = path / FAILURE
    if not file.exists():
        return None
    with reading(file):
        return str(json.loads(file.read_text())["what"])


def check_same(file: Path, config: dict[str, Any]) -> None:
    """Writes what a folder is for; refuses one that is for something else."""
    config = json.loads(json.dumps(config))
    if file.exists():
        with reading(file):
            old = json.loads(file.read_text())
        if old != config:
            raise Problem(f"{file.parent} holds another run ({differences(old, config)}); give another --out")
    else:
        write(file, json.dumps(config, indent=1))


def write(file: Path, text: str) -> None:
    """Replaces a file whole."""
    partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
    with writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text)
        partial.replace(file)


def _save(file: Path, state: dict[str, Any]) -> None:
    """Replaces a file of tensors whole, and waits for the disk."""
    partial = file.with_suffix(".partial")
    with writing(file):
        with partial.open("wb") as stream:
            torch.save(state, stream)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(file)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full or closed disk, said plainly."""
    try:
        yield
    except OSError as error:
        raise Problem(
            f"cannot write {path}: {error.strerror}; what was written stands, and the same command goes on from there"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A damaged file, said plainly."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {path}: {error}") from error
