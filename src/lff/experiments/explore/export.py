"""The page as files: what is in the package, and the runs that it is to show as one more script."""

import json
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

from lff.experiments.folder import writing

ENTRY = "index.html"


def files(runs: list[dict[str, Any]]) -> dict[str, bytes]:
    """Every file of the page by its name.

    Scripts are plain ones rather than modules, and the runs are a script: a browser that opens a page from disk loads both, and
    neither modules nor data.
    """
    home = resources("lff.experiments.explore").joinpath("static")
    found = {item.name: item.read_bytes() for item in home.iterdir() if item.name.endswith((".html", ".css", ".js"))}
    text = json.dumps(runs, separators=(",", ":"))
    return {**found, "runs.js": f'"use strict";\nLFF.runs = {text};\n'.encode()}


def export(runs: list[dict[str, Any]], to: Path) -> Path:
    """Writes the page into a folder, which is made where it is missing; returns the file to open."""
    with writing(to):
        to.mkdir(parents=True, exist_ok=True)
        for name, content in files(runs).items():
            (to / name).write_bytes(content)
    return to / ENTRY
