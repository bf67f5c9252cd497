"""Addresses that open the page at a state."""

from urllib.parse import urlencode

from lff.experiments.records import FINAL, INITIAL, Run

#: Where the report looks for the exported page, in the folder of the comparison.
BESIDE = "explore/index.html"


def address(run: Run) -> str | None:
    """The part after the # that shows a run: on the left as it started, on the right as it ended. None where it kept neither."""
    if not any((run.folder / kept).is_dir() for kept in (INITIAL, FINAL)):
        return None
    name = f"run:{run.folder.name}"
    return urlencode({"a.from": name, "a.stop": 0, "b.from": name})
