import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lff.experiments import claims
from lff.experiments.claims import claim


def test_one_process_holds_a_claim_and_gives_it_back(tmp_path: Path) -> None:
    file = tmp_path / "run.claim"
    with claim(file) as mine:
        assert mine
        with claim(file) as again:
            assert not again
        assert file.exists()
    assert not file.exists()
    with claim(file) as mine:
        assert mine


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    file = tmp_path / "run.claim"
    file.write_text(json.dumps({"host": socket.gethostname(), "pid": dead.pid}))
    with claim(file) as mine:
        assert mine


def test_the_claim_of_another_machine_is_taken_over_once_it_is_stale(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])  # whose number says nothing about a process elsewhere
    dead.wait()
    file = tmp_path / "run.claim"
    file.write_text(json.dumps({"host": "elsewhere", "pid": dead.pid}))
    with claim(file) as mine:
        assert not mine
    old = time.time() - claims.STALE - 1
    os.utime(file, (old, old))
    with claim(file) as mine:
        assert mine


def test_a_claim_that_was_renewed_in_the_meantime_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process sees a stale claim; before it can take that away, another has done so and holds a fresh one."""
    file = tmp_path / "run.claim"
    file.write_text(json.dumps({"host": "elsewhere", "pid": 1}))
    seen = iter([True])
    judge = claims._stale
    monkeypatch.setattr(claims, "_stale", lambda path: next(seen, None) or judge(path))
    with claim(file) as mine:
        assert not mine
    assert file.exists()


def test_of_many_processes_that_want_a_stale_claim_one_gets_it(tmp_path: Path) -> None:
    file = tmp_path / "run.claim"
    file.write_text(json.dumps({"host": "elsewhere", "pid": 1}))
    os.utime(file, (1, 1))
    code = (
        "import sys, time, pathlib\n"
        "from lff.experiments.claims import claim\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "with claim(pathlib.Path(sys.argv[1])) as mine:\n"
        "    print('mine' if mine else 'not mine', flush=True)\n"
        "    time.sleep(3 if mine else 0)\n"
    )
    pipe = subprocess.PIPE
    workers = [subprocess.Popen([sys.executable, "-c", code, str(file)], stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    said = [worker.communicate()[0].strip() for worker in _together(workers)]
    assert sorted(said) == ["mine", "not mine", "not mine", "not mine"]


def _together(workers: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Lets all begin at once, before anything is waited for."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return workers
