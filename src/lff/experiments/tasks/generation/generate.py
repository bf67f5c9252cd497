"""`lff generate RUN`: pictures by a trained model, as a picture."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from einops import rearrange, repeat
from jaxtyping import Int64
from PIL import Image, ImageDraw
from rich.console import Console
from rich.progress import track
from torch import Tensor

from lff.experiments import finished
from lff.experiments.problems import Problem
from lff.experiments.tasks.generation.config import GenerationConfig
from lff.experiments.tasks.generation.decode import Decoder, draw
from lff.experiments.tasks.generation.model import PixelModel, build
from lff.experiments.tasks.generation.pictures import read, tokens, untoken

GAP, LINE, ACROSS = 2, 16, 8  # pixels between pictures and of a heading, before enlarging; pictures in a row
GREY = 128


def load(run: Path, device: torch.device) -> tuple[PixelModel, GenerationConfig, dict[str, Any]]:
    """The model of a finished run, with its settings and all that its config.json says."""
    about, row, weights, _ = finished.load(run, "generation")
    config = finished.settings(GenerationConfig, about)
    model = build(config, row, about["channels"])
    model.load_state_dict(weights)
    model.to(device).eval()
    model.seed()
    return model, config, about


def paint(
    model: PixelModel,
    given: Int64[Tensor, "b k"],
    length: int,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    label: str | None = None,
) -> Int64[Tensor, "b {length}"]:
    """Goes on with the first tokens of some pictures.

    Args:
        model: in evaluation mode, with hash seeds.
        given: the tokens that are known, none for a picture from nothing.
        length: tokens of a picture.
        seed: of the draws.
        temperature: see `draw`.
        top_k: see `draw`.
        label: of a progress bar on stderr; None for no bar.
    """
    generator = torch.Generator(given.device).manual_seed(seed)
    decoder = Decoder(model.host, len(given), length)
    start = (
        torch.zeros_like(given[:, :1]) if given.shape[1] else torch.zeros(len(given), 1, dtype=torch.long, device=given.device)
    )
    found = [given]
    logits = decoder(torch.cat([start, given], dim=1))
    for at in _watched(range(given.shape[1], length), label):
        token = rearrange(draw(logits, generator, temperature=temperature, top_k=top_k), "b -> b 1")
        found.append(token)
        if at + 1 < length:
            logits = decoder(token)
    return torch.cat(found, dim=1)


def _watched(steps: range, label: str | None) -> Iterator[int]:
    return iter(track(steps, label, console=Console(stderr=True), transient=True)) if label else iter(steps)


def generate(
    run: Path,
    out: Path,
    *,
    samples: int,
    completions: int,
    data: Path | None,
    device: torch.device,
    seed: int,
    temperature: float,
    top_k: int,
) -> str | None:
    """Draws the pictures of a run into one file; gives a line where completions were left out.

    Args:
        run: its folder.
        out: the picture.
        samples: pictures from nothing.
        completions: pictures of the validation set whose upper half is given.
        data: the data set of the run; not needed for the one inside the package.
        device: where to compute.
        seed: of the draws.
        temperature: see `draw`.
        top_k: see `draw`.
    """
    model, config, about = load(run, device)
    length, left_out = config.size**2 * about["channels"], None
    options: dict[str, Any] = {"seed": seed, "temperature": temperature, "top_k": top_k}
    rows: list[tuple[str, Tensor]] = []
    if samples:
        none = torch.empty(samples, 0, dtype=torch.long, device=device)
        drawn = untoken(paint(model, none, length, label=f"{samples} samples", **options), config.size)
        rows += [("Samples" if start == 0 else "", drawn[start : start + ACROSS]) for start in range(0, samples, ACROSS)]
    if completions and data is None and not about.get("embedded"):
        left_out = "no completions: the run was not trained on the data inside the package; give --data"
    elif completions:
        pixels = read(data, "val", config.size).pixels[:completions]
        if pixels.shape[1] != about["channels"]:
            raise Problem(f"the run's pictures have {about['channels']} channels, got {pixels.shape[1]}; give its --data")
        rows += _completed(model, tokens(pixels.to(device)), config.size, options)
    if rows:
        out.parent.mkdir(parents=True, exist_ok=True)
        mosaic(rows).save(out)
    return left_out


def _completed(model: PixelModel, ids: Tensor, size: int, options: dict[str, Any]) -> list[tuple[str, Tensor]]:
    length = ids.shape[1]
    half = size // 2 * (length // size)  # whole rows
    whole = paint(model, ids[:, :half], length, label=f"{len(ids)} completions", **options)
    hidden = torch.cat([ids[:, :half], torch.full_like(ids[:, half:], GREY)], dim=1)
    shown = {"The upper half is given": hidden, "Completed": whole, "As they are": ids}
    return [
        (title if start == 0 else "", untoken(found[start : start + ACROSS], size))
        for title, found in shown.items()
        for start in range(0, len(ids), ACROSS)
    ]


def mosaic(rows: list[tuple[str, Tensor]]) -> Image.Image:
    """Rows of pictures, [b, channels, size, size] in uint8, under their headings, enlarged so that pixels can be seen."""
    size = rows[0][1].shape[-1]
    factor = max(1, 256 // size)
    parts = []
    for title, pictures in rows:
        blank = torch.full((ACROSS, 3, size + GAP, size + GAP), 255, dtype=torch.uint8)
        shown = pictures.cpu().expand(-1, 3, -1, -1)
        blank[: len(shown), :, :size, :size] = shown
        row = repeat(blank, "b rgb h w -> (h i) (b w j) rgb", i=factor, j=factor)
        if title:
            heading = Image.new("RGB", (row.shape[1], 2 * LINE), "white")
            ImageDraw.Draw(heading).text((2, LINE // 2), title, fill="black", font_size=LINE)
            parts.append(np.asarray(heading))
        parts.append(row.numpy())
    return Image.fromarray(np.concatenate(parts))
