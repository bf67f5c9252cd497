"""The subcommand of `lff` that finds things in pictures."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from lff.experiments.problems import plainly


def detect(
    run: Annotated[Path, tyro.conf.Positional],
    images: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path = Path("detected"),
    threshold: float = 0.5,
    weights: Path | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Draws what a trained detector finds on pictures, and writes it as COCO results.

    Args:
        run: the folder of a finished run of detection, as runs/detection-tiny/runs/Sine-2D--seed-0.
        images: pictures to look at.
        out: folder for the drawn pictures and detections.json.
        threshold: score from which on a box is drawn; detections.json has all.
        weights: file with the weights of a frozen backbone, where its package is not installed.
        device: where to run.
    """
    from lff.experiments import devices
    from lff.experiments.tasks.detection import detect as detecting

    with plainly():
        for line in detecting.detect(run, images, out, threshold, weights, devices.find(device)):
            print(line)
