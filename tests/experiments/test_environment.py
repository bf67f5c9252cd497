import json
import subprocess
import sys
from pathlib import Path

import torch

from lff.experiments.environment import environment


def test_a_record_names_commit_versions_device_and_seeds() -> None:
    record = environment(seeds=[0, 1])
    assert json.loads(json.dumps(record)) == record
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert head.stdout.startswith(record["commit"].rstrip("+"))
    assert record["versions"]["torch"] == torch.__version__.split("+")[0] or record["versions"]["torch"] == torch.__version__
    assert record["device"].startswith("CPU: ")
    assert record["seeds"] == [0, 1]


def test_the_command_is_the_one_to_repeat_and_the_commit_can_be_told(monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/lff/__main__.py", "compare", "--methods", "Learnable-Fourier+MLP(gamma=4)"])
    monkeypatch.setenv("LFF_COMMIT", "0123abcd")
    record = environment()
    assert record["command"] == "lff compare --methods 'Learnable-Fourier+MLP(gamma=4)'"
    assert record["commit"] == "0123abcd"


def test_a_record_holds_no_path_of_the_machine(tmp_path) -> None:
    script = tmp_path / "measure.py"
    script.write_text("from lff.experiments.environment import environment; print(environment()['command'])")
    run = subprocess.run([sys.executable, script, "--fast"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "python measure.py --fast"
