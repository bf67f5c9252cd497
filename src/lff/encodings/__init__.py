"""The encodings, and the paper's row names for them: `METHODS` is every row of its tables and figures, written out."""

import difflib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from lff import arguments
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.encodings.fourier import FourierFeatures, Gamma, LearnableFourier
from lff.encodings.groups import Flattened, Grouped
from lff.encodings.mlp import MLP
from lff.encodings.modulated import Dense, Modulated, Scaled
from lff.encodings.sinusoidal import MultiDimSine, Sine
from lff.encodings.zero import Zero


def _fourier(coords: int, depth: int, *, groups: int = 1, **options: Any) -> Encoding:
    """Eq. 2 alone: the features are the encoding."""
    m, d = Grouped.split(coords, depth, groups)
    features = FourierFeatures(m, d, **options)
    return Grouped(features, groups) if groups > 1 else features


def _fourier_mlp(
    coords: int,
    depth: int,
    *,
    groups: int = 1,
    features: int | None = None,
    gamma: Gamma = 1.0,
    init: str = "normal",
    learnable: bool = True,
    **mlp: Any,
) -> Encoding:
    """Algorithm 1 with the variants of W_r that `LearnableFourier` leaves out."""
    m, d = Grouped.split(coords, depth, groups)
    r_x = FourierFeatures(m, _or(features, d), gamma=gamma, init=init, learnable=learnable)
    return Grouped(Modulated(r_x, d, **mlp), groups)


def _fourier_dense(coords: int, depth: int, *, features: int | None = None, gamma: Gamma = 1.0, scale: float = 1.0) -> Encoding:
    return Dense(FourierFeatures(coords, _or(features, depth), gamma=gamma), depth, scale=scale)


def _fourier_scale(coords: int, depth: int, *, gamma: Gamma = 1.0, scale: float = 1.0) -> Encoding:
    return Scaled(FourierFeatures(coords, depth, gamma=gamma), scale=scale)


def _sine_1d(coords: int, depth: int, *, extent: Sequence[int] | None = None, temperature: float = 10000.0) -> Encoding:
    sine = Sine(1, depth, temperature=temperature)
    return sine if coords == 1 else Flattened(sine, _needed(extent))


def _sine_mlp(
    coords: int, depth: int, *, groups: int = 1, features: int | None = None, temperature: float = 10000.0, **mlp: Any
) -> Encoding:
    m, d = Grouped.split(coords, depth, groups)
    return Grouped(Modulated(Sine(m, _or(features, d), temperature=temperature), d, **mlp), groups)


def _md_sine_mlp(coords: int, depth: int, *, features: int | None = None, temperature: float = 10000.0, **mlp: Any) -> Encoding:
    return Modulated(MultiDimSine(coords, _or(features, depth), temperature=temperature), depth, **mlp)


def _embed(coords: int, depth: int, *, extent: Sequence[int] | None = None, join: str = "concat", scale: float = 1.0) -> Encoding:
    return Embed(_needed(extent), depth, join=join, scale=scale)


def _embed_mlp(
    coords: int,
    depth: int,
    *,
    extent: Sequence[int] | None = None,
    join: str = "concat",
    features: int | None = None,
    **mlp: Any,
) -> Encoding:
    return Modulated(Embed(_needed(extent), _or(features, depth), join=join), depth, **mlp)


def _or(features: int | None, default: int) -> int:
    return default if features is None else features


def _needed(extent: Sequence[int] | None) -> Sequence[int]:
    if extent is None:
        raise ValueError("extent must be given: this method numbers the cells of a grid or keeps a table of them, got None")
    return extent


class Method(NamedTuple):
    """A row name's constructor, and the number of coordinates that the name itself states."""

    make: Callable[..., Encoding]
    coords: int | None = None


METHODS: dict[str, Method] = {
    "none": Method(Zero),
    # Section 4: the baselines
    "Sine-1D": Method(_sine_1d),
    "Sine-2D": Method(Sine, 2),
    "Sine-3D": Method(Sine, 3),
    "Sine-4D": Method(Sine, 4),
    "Embed-1D": Method(partial(_embed, join="cell")),
    "Embed-2D": Method(_embed, 2),
    "Embed-3D": Method(_embed, 3),
    "Embed-4D": Method(partial(_embed, join="sum"), 4),  # summed in the public widget captioning code
    "MLP": Method(MLP),
    # Section 4: the method, its components and its groups (groups/coordinates of each)
    "Learnable-Fourier": Method(_fourier),
    "Learnable-Fourier-1/4": Method(_fourier, 4),
    "Learnable-Fourier-2/2": Method(partial(_fourier, groups=2), 4),
    "Learnable-Fourier-4/1": Method(partial(_fourier, groups=4), 4),
    "Learnable-Fourier+MLP": Method(LearnableFourier),
    "Learnable-Fourier+MLP-1/4": Method(LearnableFourier, 4),
    "Learnable-Fourier+MLP-2/2": Method(partial(LearnableFourier, groups=2), 4),
    "Learnable-Fourier+MLP-4/1": Method(partial(LearnableFourier, groups=4), 4),
    "Fixed-Fourier": Method(partial(_fourier, learnable=False)),
    "Fixed-Fourier+MLP": Method(partial(_fourier_mlp, learnable=False)),
    "Fixed-Fourier+MLP-1/4": Method(partial(_fourier_mlp, learnable=False), 4),
    "Fixed-Fourier+MLP-2/2": Method(partial(_fourier_mlp, learnable=False, groups=2), 4),
    "Fixed-Fourier+MLP-4/1": Method(partial(_fourier_mlp, learnable=False, groups=4), 4),
    # Appendix: sines in several dimensions, and other features before the MLP
    "MD-Sine": Method(MultiDimSine),
    "MD-Sine+MLP": Method(_md_sine_mlp),
    "Sine-2D+MLP": Method(_sine_mlp, 2),
    "Sine-4D+MLP-1/4": Method(_sine_mlp, 4),
    "Sine-4D+MLP-2/2": Method(partial(_sine_mlp, groups=2), 4),
    "Sine-4D+MLP-4/1": Method(partial(_sine_mlp, groups=4), 4),
    "Embed-1D+MLP": Method(partial(_embed_mlp, join="cell")),
    "Embed-2D+MLP": Method(_embed_mlp, 2),
    "Embed-4D+MLP": Method(partial(_embed_mlp, join="sum"), 4),
    # Appendix: less than the MLP, "a dense transform or even simpler scaling over Fourier features"
    "Learnable-Fourier+Dense": Method(_fourier_dense),
    "Learnable-Fourier+Scale": Method(_fourier_scale),
    # Appendix: what W_r starts from
    "Uniform [0, 1]": Method(partial(_fourier, init="uniform")),
    "Uniform [0, 1] & MLP": Method(partial(_fourier_mlp, init="uniform")),
    "N(0, 4^-2)": Method(partial(_fourier, gamma=4.0)),
    "N(0, 4^-2) & MLP": Method(partial(LearnableFourier, gamma=4.0)),
}


def build(
    name: str, *, coords: int, depth: int, extent: int | Sequence[int] | None = None, impl: Any = "auto", **options: Any
) -> Encoding:
    """The encoding that a row name of the paper stands for, for instance `build("Sine-2D", coords=2, depth=256)`.

    Args:
        name: a key of `METHODS`; the paper's spellings "Learnable-Fourier + MLP" and "Transformer MD-Sine" are understood too.
        coords: coordinates of a position.
        depth: size of the encoding.
        extent: cells along every axis, for the methods with tables and those that flatten a grid; others do without.
        impl: "torch"; "triton", the fused kernels; or "auto", these where they serve. Methods without a kernel take it too.
        options: passed to the constructor, for instance `gamma`, `features`, `hidden`, `layer_norm`, `dropout`, `scale`.
    """
    key = name.replace(" + ", "+").removeprefix("Transformer ")
    if key not in METHODS:
        near = difflib.get_close_matches(key, METHODS, n=1, cutoff=0.0)[0]
        raise ValueError(f"name must be a key of lff.METHODS, got {name!r}; perhaps you meant {near!r}")
    make, stated = METHODS[key]
    if stated is not None and coords != stated:
        raise ValueError(f"coords must be {stated} for {key!r}, got {coords!r}")
    if extent is not None:
        extent = arguments.sizes("extent", extent)
        if len(extent) != coords:
            raise ValueError(f"extent must have {coords} axes, one a coordinate, got {extent}")
    if "extent" in inspect.signature(make).parameters:
        options["extent"] = extent
    encoding = make(coords, depth, **options)
    encoding.impl = impl
    return encoding
