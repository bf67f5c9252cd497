"""The report in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_report import make

from lff.experiments import report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
pytestmark = [pytest.mark.plain, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--no-first-run"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_by_itself_and_fits(tmp_path: Path, browser: Any, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    file = report.write(make(tmp_path))
    page.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert wrong == []
    assert page.get_by_role("heading", level=1).is_visible()
    for section in ("Results", "Convergence", "Image sizes", "Environment", "To repeat this"):
        assert page.get_by_role("heading", name=section, exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width  # tables scroll inside themselves
    assert page.locator("svg").count() >= 3
    back, text = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    brightness = [sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) for colour in (back, text)]
    assert (brightness[0] > brightness[1]) == (scheme == "light")
    page.close()
