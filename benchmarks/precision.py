"""Relative error of encodings in low precision, measured against the same encoding in float64.

    python benchmarks/precision.py [--device cuda]

The error is |output - reference| / |reference - its mean over positions|: most of an MLP's output may be the same everywhere, and
would hide an error in the part that tells positions apart. The table shows the worst of three seeds. Every number of lff is to be
at most 2e-2; the script exits 1 where one is not. A minute and a half on 2 cores.
"""

import argparse
import importlib.metadata
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import tables
import torch
from torch import Tensor, nn
from torch.nn import functional

import lff
from lff.experiments.environment import environment

SEEDS = [0, 1, 2]
DEPTH = 768  # every method of lff allows it
COUNT, LAST = 4096, 1024  # positions, and the largest coordinate
OURS = ("Fourier", "Sine", "Uniform", "N(0")  # what the names of the methods that compute phases contain
LIMIT = 2e-2


class Trial(NamedTuple):
    """An encoding ready to run: as it is, made for bfloat16, and what both ought to give; each [positions, depth]."""

    float32: Callable[[], Tensor]
    bfloat16: Callable[[], Tensor]
    reference: Tensor


class Subject(NamedTuple):
    """A row of the table; `prepare` makes its trial from a seed."""

    package: str
    encoding: str
    positions: str
    prepare: Callable[[int, torch.device], Trial]


class Plain(nn.Module):
    """Algorithm 1 as it is mostly written: a linear layer for W_r, and LayerNorm before both layers of the MLP."""

    def __init__(self, coords: int, depth: int, hidden: int = 32) -> None:
        super().__init__()
        self.w_r = nn.Linear(coords, depth // 2, bias=False)
        nn.init.normal_(self.w_r.weight)
        self.norm_1, self.dense_1 = nn.LayerNorm(depth), nn.Linear(depth, hidden)
        self.norm_2, self.dense_2 = nn.LayerNorm(hidden), nn.Linear(hidden, depth)

    def forward(self, x: Tensor) -> Tensor:
        angles = self.w_r(x)
        r_x = torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(self.norm_1.normalized_shape[0])
        return self.dense_2(self.norm_2(functional.gelu(self.dense_1(self.norm_1(r_x)))))


def ours() -> list[Subject]:
    """Every method of lff that computes phases. Sine-1D is given a sequence, since it numbers the cells of a grid."""
    subjects = []
    for name, method in lff.METHODS.items():
        if any(part in name for part in OURS):
            coords = method.coords or (1 if name == "Sine-1D" else 2)
            prepare = of_positions(lambda name=name, coords=coords: lff.build(name, coords=coords, depth=DEPTH), (coords,))
            subjects.append(Subject("lff", name, f"0 to {LAST}, float32", prepare))
    return subjects


def plain() -> list[Subject]:
    prepare = of_positions(lambda: Plain(2, DEPTH), (2,), cast=torch.bfloat16)
    return [Subject("plain", "Learnable-Fourier+MLP, LayerNorm", f"0 to {LAST}, bfloat16", prepare)]


def learnable_fourier_positional_encoding() -> list[Subject]:
    from learnable_fourier_positional_encoding import LearnableFourierPositionalEncoding

    def make() -> nn.Module:
        return LearnableFourierPositionalEncoding(G=1, M=2, F_dim=DEPTH, H_dim=32, D=DEPTH, gamma=1.0)

    prepare = of_positions(make, (1, 2), cast=torch.bfloat16)
    package = "learnable-fourier-positional-encoding"
    return [Subject(package, "LearnableFourierPositionalEncoding", f"0 to {LAST}, bfloat16", prepare)]


def positional_encodings() -> list[Subject]:
    """Modules that make their own positions from a tensor's shape; new ones for every call, since they keep an output."""
    from positional_encodings.torch_encodings import PositionalEncoding1D, PositionalEncoding2D

    def prepare(module: type[nn.Module], size: tuple[int, ...], device: torch.device) -> Trial:
        def encode(dtype: torch.dtype) -> Tensor:
            return module(DEPTH).to(device, dtype)(torch.zeros(1, *size, DEPTH, device=device, dtype=dtype))

        share = DEPTH // len(size)
        angles = phases(size, 10000.0 ** (-torch.arange(0, share, 2, dtype=torch.float64) / share), device)
        return of_dtype(encode, torch.stack([angles.sin(), angles.cos()], dim=-1))

    name, sequence, square = "positional-encodings", (1024,), (64, 64)
    return [
        Subject(
            name, "PositionalEncoding1D", "0 to 1023, its own", lambda _, device: prepare(PositionalEncoding1D, sequence, device)
        ),
        Subject(
            name, "PositionalEncoding2D", "0 to 63, its own", lambda _, device: prepare(PositionalEncoding2D, square, device)
        ),
    ]


def timm() -> list[Subject]:
    """Functions that make their own positions and take the dtype of the output, as timm's models call them."""
    from timm.layers import build_fourier_pos_embed, build_sincos2d_pos_embed

    size, bands = [64, 64], DEPTH // 4

    def sincos(seed: int, device: torch.device) -> Trial:
        angles = phases(size, 10000.0 ** (-torch.arange(bands, dtype=torch.float64) / bands), device)
        reference = torch.cat([angles.sin(), angles.cos()], dim=-2)
        return of_dtype(lambda dtype: build_sincos2d_pos_embed(size, DEPTH, device=device, dtype=dtype), reference)

    def fourier(seed: int, device: torch.device) -> Trial:
        octaves = torch.linspace(0, math.log2(224) - 1, bands, dtype=torch.float64)
        angles = phases(size, math.pi * 2**octaves, device, first=-1, last=1)
        reference = torch.cat([angles.sin(), angles.cos()], dim=-2)

        def encode(dtype: torch.dtype) -> Tensor:
            return torch.cat(build_fourier_pos_embed(size, num_bands=bands, device=device, dtype=dtype), dim=-2)

        return of_dtype(encode, reference)

    return [
        Subject("timm", "build_sincos2d_pos_embed", "0 to 63, its own; `dtype=torch.bfloat16`", sincos),
        Subject("timm", "build_fourier_pos_embed", "-1 to 1, its own; `dtype=torch.bfloat16`", fourier),
    ]


def of_positions(
    make: Callable[[], nn.Module], shape: tuple[int, ...], *, cast: torch.dtype = torch.float32
) -> Callable[[int, torch.device], Trial]:
    """Trials of a module that is given positions, each of `shape`; in the cast model they have the dtype `cast`."""

    def prepare(seed: int, device: torch.device) -> Trial:
        torch.manual_seed(seed)
        encode, x = make().to(device), torch.randint(0, LAST + 1, (COUNT, *shape)).float().to(device)
        in_bfloat16 = deepcopy(encode).bfloat16()
        return Trial(lambda: encode(x), lambda: in_bfloat16(x.to(cast)), deepcopy(encode).double()(x.double()))

    return prepare


def of_dtype(encode: Callable[[torch.dtype], Tensor], reference: Tensor) -> Trial:
    """The trial of an encoding that makes its own positions and is asked for a dtype."""
    return Trial(lambda: encode(torch.float32), lambda: encode(torch.bfloat16), reference)


def phases(size: Sequence[int], freqs: Tensor, device: torch.device, *, first: float = 0.0, last: float | None = None) -> Tensor:
    """Coordinate times frequency at every cell of a grid, in float64, [*size, coords, freqs]; cells are 1 apart by default."""
    axes = [torch.linspace(first, n - 1 if last is None else last, n, dtype=torch.float64, device=device) for n in size]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)[..., None] * freqs.to(device)


@contextmanager
def float32_matmul_precision(precision: str) -> Iterator[None]:
    """The setting of that name, for as long as the context lasts."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def relative_error(output: Tensor, reference: Tensor) -> float:
    """|output - reference| over |the part of the reference that varies with the position|."""
    output, reference = output.reshape(-1, DEPTH), reference.reshape(-1, DEPTH)
    return float((output - reference).norm() / (reference - reference.mean(0)).norm())


@torch.no_grad()
def errors(trial: Trial, device: torch.device) -> dict[str, float]:
    """The three columns of a row, for one seed."""
    with torch.autocast(device.type, dtype=torch.bfloat16):
        autocast = trial.float32()
    with float32_matmul_precision("medium"):
        medium = trial.float32()
    outputs = {"autocast": autocast, "cast": trial.bfloat16(), "medium": medium}
    return {column: relative_error(output, trial.reference) for column, output in outputs.items()}


def row(subject: Subject, device: torch.device) -> dict[str, Any]:
    """A row of the table: the worst error over the seeds in each column."""
    found = [errors(subject.prepare(seed, device), device) for seed in SEEDS]
    version = "" if subject.package == "plain" else f" {importlib.metadata.version(subject.package)}"
    worst = {column: max(one[column] for one in found) for column in found[0]}
    return {"encoding": subject.encoding, "package": subject.package + version, "positions": subject.positions, **worst}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the error of encodings in low precision.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = torch.device(parser.parse_args().device)
    rows: list[dict[str, Any]] = []
    for subjects in (ours, plain, learnable_fourier_positional_encoding, positional_encodings, timm):
        try:
            rows += [row(subject, device) for subject in subjects()]
        except ModuleNotFoundError as missing:
            nothing = dict.fromkeys(("positions", "autocast", "cast", "medium"))
            rows.append({"encoding": "not installed", "package": missing.name, **nothing})
    tables.save(f"precision-{device.type}", {"environment": environment(device=device.type, seeds=SEEDS), "rows": rows})
    columns = ("autocast", "cast", "medium")
    if over := [r["encoding"] for r in rows if r["package"].startswith("lff ") and not max(r[c] for c in columns) <= LIMIT]:
        sys.exit(f"above {LIMIT}: {', '.join(over)}")


if __name__ == "__main__":
    main()
