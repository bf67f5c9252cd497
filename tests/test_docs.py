"""The pages: their code runs, what is made from the source and from records is up to date, their links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lff.experiments import params
from lff.experiments.figures.paper import FIGURES

pytestmark = pytest.mark.plain
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_code_runs_as_it_stands(code: str) -> None:
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{code}\n{run.stderr}"


def _script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_page_is_what_the_docstrings_say() -> None:
    api = _script("docs/make_api.py")
    assert api.PAGE.read_text("utf-8") == api.page(), "run make docs"


def test_the_parameter_page_is_what_is_counted() -> None:
    assert (ROOT / "docs/parameters.md").read_text("utf-8") == params.page(), "run make docs"


def test_tables_are_those_of_the_records() -> None:
    assert _script("benchmarks/tables.py").problems() == []


def test_what_is_pending_is_shown_once_there_is_a_record() -> None:
    tables = _script("benchmarks/tables.py")
    assert set(tables.PENDING) <= {*tables.COLUMNS, *tables.COMPARISONS}
    assert set(tables.BESIDE) <= set(tables.COMPARISONS)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), flags=re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


def test_the_site_builds_without_a_warning_and_every_page_is_in_its_navigation(tmp_path: Path) -> None:
    build = [
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--quiet",
        str(ROOT / "docs"),
        str(tmp_path),
    ]  # a page in no toctree is warned of
    run = subprocess.run([sys.executable, *build], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for page in (ROOT / "docs").glob("*.md"):
        assert (tmp_path / f"{page.stem}.html").exists()
    home = (tmp_path / "index.html").read_text("utf-8")
    assert not re.findall(r'(?:src|href)="(?:https?:)?//(?!arxiv|www.sphinx-doc|github.com/pradyunsg|pradyunsg)[^"]+"', home)


def test_every_figure_of_the_paper_has_a_row() -> None:
    rows = re.findall(r"^\| Figure (\d+) \|(.*)\|$", (ROOT / "docs/figures.md").read_text("utf-8"), flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == [figure.number for figure in FIGURES]
    for (number, cells), figure in zip(rows, FIGURES, strict=True):
        shows, command, picture, agrees = (cell.strip() for cell in cells.split("|"))
        assert all((shows, picture, agrees)), number
        assert "`lff" in command or figure.number == 13, number
