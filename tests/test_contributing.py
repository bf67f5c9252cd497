"""Follows CONTRIBUTING.md's worked example to the letter, in a copy of the repository, and runs the suites over it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain
ROOT = Path(__file__).parent.parent
SUITES = ("tests/test_contract.py", "tests/test_compile.py", "tests/encodings/test_radial.py")


def test_the_worked_example_passes_every_suite_by_being_in_the_table(tmp_path: Path) -> None:
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), flags=re.DOTALL)
    assert [path for path, _ in blocks] == [
        "src/lff/encodings/radial.py",
        "src/lff/encodings/__init__.py",
        "tests/encodings/test_radial.py",
    ]
    for path, code in blocks:
        if path.endswith("__init__.py"):
            line, entry = code.splitlines()
            table = (tmp_path / path).read_text("utf-8")
            table = table.replace("from lff.encodings.zero", f"{line}\nfrom lff.encodings.zero")
            code = table.replace("METHODS: dict[str, Method] = {", "METHODS: dict[str, Method] = {\n" + entry)
        (tmp_path / path).write_text(code, "utf-8")

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "Radial or test_radial", *SUITES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed
    assert int(passed[1]) >= 20, run.stdout  # the contract, compiling, exporting, ONNX and its own
