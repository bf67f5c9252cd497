"""The subcommands of `lff` that are about captions."""

import json
from pathlib import Path
from typing import Annotated, Any

import tyro

from lff.experiments.problems import Problem, plainly


def caption(
    run: Annotated[Path, tyro.conf.Positional], screen: Annotated[Path, tyro.conf.Positional], out: Path | None = None
) -> None:
    """Draws a screen's boxes with the captions that a finished run of captioning finds for them.

    Prints them too: each with its number in the picture and the name of its element.

    Args:
        run: the run's folder, FOLDER/runs/METHOD--seed-N.
        screen: a JSON file: a screen annotation, or a view hierarchy of Rico with its screenshot beside it.
        out: the picture; by default beside the screen, with .captions.png at its end.
    """
    from lff.experiments.tasks.captioning.show import caption as show

    target = out or screen.with_suffix(".captions.png")
    with plainly():
        for number, (name, text) in enumerate(show(run, screen, target), start=1):
            print(f"{number}\t{name}\t{text}")
    print(f"The picture is {target}")


def score(folder: Annotated[Path, tyro.conf.Positional], data: Path | None = None) -> None:
    """Adds METEOR and SPICE to the finished runs of a comparison, where they can be computed, and makes its report again.

    Args:
        folder: the --out of `lff compare captioning`.
        data: folder of the data set, as it was given there.
    """
    from lff.experiments import report as reporting
    from lff.experiments.finished import settings
    from lff.experiments.tasks.captioning import metrics
    from lff.experiments.tasks.captioning.config import CaptioningConfig
    from lff.experiments.tasks.captioning.task import Captioning

    with plainly():
        about = _about(folder)
        task = Captioning(settings(CaptioningConfig, about["config"]), data)
        ours = task.about()["data"]
        theirs = {json.loads(file.read_text()).get("data") for file in (folder / "runs").glob("*/config.json")}
        if theirs - {ours}:
            raise Problem(f"{folder} was made from other data than {data or 'those inside the package'}; give its --data")
        for line in metrics.without().values():
            print(line)
        task.complete(folder)
        print(reporting.table(folder))
        print(f"The report is {reporting.write(folder)}")


def positions(out: Annotated[Path, tyro.conf.Positional], data: Path | None = None) -> None:
    """Counts seen and unseen positions of a captioning data set, and draws their histogram and their hull.

    Args:
        out: folder for positions.json, histogram.svg and hull.svg.
        data: folder of the data set; by default the one that ships with the package.
    """
    from lff.experiments.tasks.captioning.pictures import report
    from lff.experiments.tasks.captioning.source import read

    with plainly():
        source = read(data, pixels=False, own_text=False, cache=Path.home() / ".cache" / "lff")
        found = report(source.split, out)
    for line in source.problems:
        print(line)
    print(f"{found['widgets']:,} test widgets: {found['seen']:,} at seen positions, {found['unseen']:,} at unseen ones")
    print(f"{found['unseen_in_hull']:,} of the unseen lie in the 4-D convex hull of the training positions")
    print(f"The pictures are in {out}")


def _about(folder: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((folder / "compare.json").read_text())
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {folder / 'compare.json'}: {error}") from error
    if about.get("task") != "captioning":
        raise Problem(f"{folder} must be a comparison of captioning, got one of {about.get('task')!r}")
    return about
