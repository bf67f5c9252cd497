"""Which process does a run: workers on one machine or many share a folder, and none does what another is doing.

A claim is a file that only one process can create. Its holder touches it from time to time; one that was not touched for
`STALE` seconds, or whose process on this machine is gone, is taken away.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lff.experiments.folder import writing

TOUCH, STALE = 20.0, 120.0  # seconds


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Holds `path` while inside; gives False where another process holds it."""
    _remove_stale(path)
    if not _create(path):
        yield False
        return
    done = threading.Event()
    keeper = threading.Thread(target=_touch, args=(path, done), daemon=True)
    keeper.start()
    try:
        yield True
    finally:
        done.set()
        keeper.join()
        path.unlink(missing_ok=True)


def _create(path: Path) -> bool:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x") as file:
                json.dump({"host": socket.gethostname(), "pid": os.getpid()}, file)
        except FileExistsError:
            return False
    return True


def _remove_stale(path: Path) -> None:
    """Takes a dead holder's claim away. One process at a time, which looks again: the claim may be a fresh one by then."""
    if not _stale(path):
        return
    guard = path.with_name(f"{path.name}.takeover")
    if _age(guard) > STALE:
        guard.unlink(missing_ok=True)
    if _create(guard):
        if _stale(path):
            path.unlink(missing_ok=True)
        guard.unlink(missing_ok=True)


def _stale(path: Path) -> bool:
    try:
        return _age(path) > STALE or _gone(path.read_text())
    except FileNotFoundError:
        return False


def _age(path: Path) -> float:
    """Seconds since a file was touched; 0 where there is none."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _gone(text: str) -> bool:
    """Whether the holder was a process of this machine that is no more."""
    try:
        holder = json.loads(text)
    except ValueError:
        return False  # being written
    if holder["host"] != socket.gethostname():
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _touch(path: Path, done: threading.Event) -> None:
    while not done.wait(TOUCH):
        try:
            os.utime(path)
        except FileNotFoundError:
            return
