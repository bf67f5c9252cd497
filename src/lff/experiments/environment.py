"""What a number needs beside it to be believed: the command, the commit, the versions, the device."""

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("lff", "torch", "einops", "numpy", "transformers", "timm")


def environment(*, device: str = "cpu", seeds: list[int] | None = None) -> dict[str, Any]:
    """The record of this process, to be kept with what it measured on `device` ("cpu" or "cuda")."""
    return {
        "command": _command(),
        "commit": _commit(),
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in PACKAGES if _version(p)}},
        "device": _device(device),
        "threads": torch.get_num_threads(),
        "seeds": seeds or [],
    }


def _command() -> str:
    program, words = sys.argv[0], sys.argv[1:]
    if program.endswith("__main__.py"):  # python -m lff
        return shlex.join([Path(program).parent.name, *words])
    return shlex.join([*(["python"] if program.endswith(".py") else []), _relative(program), *words])


def _relative(program: str) -> str:
    path = Path(program)
    return (
        str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else (path.name if path.is_absolute() else program)
    )


def _commit() -> str:
    """The commit of the checkout that this package lies in, with "+" where its code differs from it.

    A machine that has the files without the repository, or with an older one, is told by the variable LFF_COMMIT.
    """
    if told := os.environ.get("LFF_COMMIT"):
        return told

    def git(*words: str) -> str:
        run = subprocess.run(["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        return run.stdout.strip()

    # Records and the pages made from them change with every run: they are not what was measured.
    changed = git(
        "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)results", ":(top,exclude,glob)**/*.md"
    )
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _device(kind: str) -> str:
    if kind == "cuda":
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return f"CPU: {names[0] if names else platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
