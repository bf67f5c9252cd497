"""From the report to the page of `lff explore`, where that has been exported beside it."""

from lff.experiments.explore.links import BESIDE, address
from lff.experiments.records import Comparison
from lff.experiments.report import elements


def explored(comparison: Comparison) -> str:
    """A link for each run that has kept its encodings; nothing where there is no exported page in the comparison's folder."""
    if not (comparison.folder / BESIDE).exists():
        return ""
    states = {f"{run.method}, seed {run.seed}": address(run) for run in comparison.runs}
    targets = {name: f"{BESIDE}#{state}" for name, state in states.items() if state is not None}
    return elements.anchors("Move over the maps, before and after training:", targets) if targets else ""
