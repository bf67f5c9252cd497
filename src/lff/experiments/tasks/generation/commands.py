"""The subcommand of `lff` that draws pictures."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from lff.experiments.problems import Problem, plainly


def generate(
    run: Annotated[Path, tyro.conf.Positional],
    samples: int = 16,
    completions: int = 8,
    temperature: float = 1.0,
    top_k: int = 0,
    seed: int = 0,
    data: Path | None = None,
    out: Path | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """Draws pictures with the model of a finished run of generation: samples, and completions of which the upper half is given.

    Args:
        run: its folder, runs/METHOD--seed-N inside the --out of `lff compare` or `lff train`.
        samples: pictures from nothing.
        completions: pictures of the validation set to complete.
        temperature: divides the logits; below 1 the likely is drawn more often, 0 takes the likeliest.
        top_k: draw among so many of the likeliest values; 0 for all.
        seed: of the draws.
        data: folder of the data set, for completions; not needed for the one that ships with the package.
        out: the picture; by default generated.png in the run's folder.
        device: where to compute.
    """
    from lff.experiments import devices
    from lff.experiments.tasks.generation.generate import generate as drawn

    if temperature < 0 or min(samples, completions, top_k) < 0 or samples + completions == 0:
        raise Problem(
            "--temperature, --samples, --completions and --top-k must not be negative, and there must be a picture to draw"
        )
    file = out or run / "generated.png"
    options: Any = {"temperature": temperature, "top_k": top_k, "seed": seed, "data": data, "device": devices.find(device)}
    with plainly():
        left_out = drawn(run, file, samples=samples, completions=completions, **options)
    if left_out:
        print(f"lff: {left_out}", file=sys.stderr)
    if samples or not left_out:
        print(f"The picture is {file}")
