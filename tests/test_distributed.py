"""Two real processes over gloo."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain
STEPS = Path(__file__).with_name("distributed_steps.py")


@pytest.mark.parametrize("scenario", ["ddp", "swapped", "fsdp", "mixed", "boxes"])
def test_two_processes_train_as_one(scenario: str) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(STEPS), scenario]
    run = subprocess.run(launch, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
