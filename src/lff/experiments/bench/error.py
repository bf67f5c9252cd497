"""How far the output is from float64's, in terms of the part of it that varies with the position."""

import torch
from jaxtyping import Float
from torch import Tensor

from lff.experiments.bench.entrants import OURS, PLAIN, fourier
from lff.experiments.bench.row import Bar, Ratio, Row, at_most
from lff.experiments.bench.turns import Bench


def relative_error(output: Float[Tensor, "n depth"], reference: Float[Tensor, "n depth"]) -> float:
    """Norm of the difference over the norm of the reference centred over positions.

    Most of an MLP's output may be the same everywhere, and would hide an error in the part that matters.
    """
    return float((output.double() - reference).norm() / (reference - reference.mean(0)).norm())


def rounding(reference: Float[Tensor, "n depth"], dtype: torch.dtype) -> float:
    """The error of the exact output rounded to `dtype`: nobody can do with less."""
    return relative_error(reference.to(dtype), reference)


@torch.no_grad()
def errors(bench: Bench, *, count: int = 2**14) -> list[Row]:
    """Positions to 1024: bfloat16 by autocast, and float32 throughout."""
    what = "relative error to float64, positions to 1024, 3-D to 768, |F| 384, |H| 32, LayerNorm"
    sizes = {"features": 384, "hidden": 32, "layer_norm": True}
    positions = 1024 * torch.rand(count, 3, device=bench.device)
    plain: dict[str, str] = {"impl": "torch"} if bench.gpu else {}
    entrants = {OURS: {"impl": "triton"}, PLAIN: plain} if bench.gpu else {OURS: plain}
    exact = fourier(bench.device, 3, 768, **sizes, **plain).double()(positions.double())
    least = rounding(exact, torch.bfloat16)
    rows = []
    for name, options in entrants.items():
        encode = fourier(bench.device, 3, 768, **sizes, **options)
        with bench.half():
            half = relative_error(encode(positions), exact)
        single = relative_error(encode(positions), exact)
        bars = (at_most(max(5e-3, least)), at_most(1e-4)) if bench.gpu and name == OURS else (None, None)  # of the kernels
        rows += [
            _row(f"{what}, bfloat16 output (rounding it alone costs {least:.2g})", name, half, bars[0]),
            _row(f"{what}, float32 throughout", name, single, bars[1]),
        ]
    return rows


def _row(what: str, name: str, found: float, bar: Bar | None) -> Row:
    ratio = Ratio(found, found, found)
    return Row(case="error", what=what, of=name, against="the norm centred over positions", ratio=ratio, bar=bar)
