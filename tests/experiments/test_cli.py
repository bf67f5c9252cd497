import subprocess
import sys

import pytest

from lff.experiments import cli, params

pytestmark = pytest.mark.plain


def _lff(*words: str) -> subprocess.CompletedProcess[str]:
    code = "from lff.experiments.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_params_prints_the_tables() -> None:
    run = _lff("params")
    assert (run.returncode, run.stdout) == (0, params.page())


def test_a_wrong_command_exits_2_and_names_the_right_ones() -> None:
    run = _lff("param")
    assert run.returncode == 2
    assert "params" in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tyro", None)
    with pytest.raises(SystemExit, match=r"pip install 'lff\[experiments\]'"):
        cli.main()
