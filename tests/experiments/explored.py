"""What the tests of the page share: a folder of runs, a browser, a page that is watched, and reading its numbers."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from test_report import make

import lff

playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
MARKS = [pytest.mark.plain, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--no-first-run"])
        yield browser
        browser.close()


@contextmanager
def watched(browser: Any, *, own: tuple[str, ...] = ("file:", "data:"), **options: Any) -> Iterator[Any]:
    """A page that, when it is closed, has asked for nothing but what is its own and has complained of nothing."""
    page = browser.new_page(**{"viewport": {"width": 1600, "height": 1000}, **options})
    page.set_default_timeout(120_000)  # a busy machine is slow, not wrong
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    yield page
    page.close()
    assert wrong == [], wrong
    assert asked
    assert [url for url in asked if not url.startswith(own)] == []


def runs(folder: Path) -> Path:
    """Three runs on a grid of 5 x 6, one of which has kept a step between its first and last, and one run of boxes."""
    torch.manual_seed(5)
    make(folder)
    checkpoint = folder / "runs" / "Learnable-Fourier+MLP--seed-0" / "checkpoint"
    lff.LearnableFourier(2, 16, layer_norm=True).save_pretrained(checkpoint / "encoding-100")
    boxes = folder / "runs" / "boxes--seed-0"
    lff.build("Learnable-Fourier+MLP-2/2", coords=4, depth=32).save_pretrained(boxes / "checkpoint/encoding-final")
    (boxes / "config.json").write_text(json.dumps({"method": "Learnable-Fourier+MLP-2/2", "seed": 0}))
    return folder


def look(page: Any, file: Path, setting: dict[str, Any]) -> None:
    """Opens the page in a state."""
    page.goto(f"{file.as_uri()}#{urlencode(setting)}")
    settled(page)


def settled(page: Any) -> None:
    """Waits until what was asked for is drawn, and has the address say so."""
    page.wait_for_function("globalThis.LFF?.page && !LFF.page.waiting && !LFF.page.dirty.size")
    page.evaluate("LFF.page.settle()")


def values(page: Any, side: str) -> list[float | None]:
    """The map's values; None where there is nothing."""
    script = "side => Array.from(LFF.page.panels[side].values, v => (Number.isNaN(v) ? null : v))"
    found: list[float | None] = page.evaluate(script, side)
    return found


def state(page: Any) -> dict[str, Any]:
    """What the page shows."""
    found: dict[str, Any] = page.evaluate("LFF.page.state")
    return found
