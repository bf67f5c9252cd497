"""The task of the documentation, run as a user would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain
PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_task_of_the_documentation_runs_in_forty_lines(tmp_path: Path) -> None:
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL) if "class Waves" in block]
    lines = code[code.index("class Waves") :].strip().splitlines()
    assert len(lines) <= 40
    (tmp_path / "my_module.py").write_text(code)
    run = subprocess.run(
        [sys.executable, "-m", "lff", "compare", "my_module:Waves", "--device", "cpu", "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "The report is out/report.html" in run.stdout
    finals = [json.loads(file.read_text().splitlines()[-1]) for file in (tmp_path / "out").rglob("metrics.jsonl")]
    assert len(finals) == 6
    assert all(final["error"] < 0.6 for final in finals)  # the mean square of the heights is a half
