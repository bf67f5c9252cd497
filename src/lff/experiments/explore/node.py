"""An encoding as the page takes it: a kind, weights as base64 of float32, and the encodings that it is made of."""

import base64
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import lff
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.encodings.fourier import FourierFeatures
from lff.encodings.groups import Flattened, Grouped
from lff.encodings.mlp import MLP
from lff.encodings.modulated import Dense, Modulated, Scaled
from lff.encodings.sinusoidal import MultiDimSine, Sine
from lff.encodings.zero import Zero

Node = dict[str, Any]


def node(encoding: Encoding, grid: Sequence[int] | None = None) -> Node:
    """What the page needs to evaluate an encoding at any position.

    A class that the page does not know is sampled on its grid, and shown there alone: a table of its outputs.

    Args:
        encoding: with the weights to show.
        grid: cells along every axis, where the encoding has been used on one.
    """
    try:
        return _node(encoding)
    except KeyError:
        if grid is None or len(grid) != encoding.coords:
            raise ValueError(f"a {type(encoding).__name__} is shown on its own grid alone, and the run names none") from None
        return _sampled(encoding, grid)


def _node(encoding: Encoding) -> Node:
    kind: Any = next(kind for kind in type(encoding).__mro__ if kind in _FIELDS or kind is Encoding)
    # A subclass that computes something else is not what it inherits from.
    if type(encoding).encode is not kind.encode:
        raise KeyError(type(encoding))
    name, fields = _FIELDS[kind]
    return {"kind": name, "coords": encoding.coords, **fields(encoding)}


def _sampled(encoding: Encoding, grid: Sequence[int]) -> Node:
    with torch.no_grad():
        outputs = encoding.eval()(lff.grid(tuple(grid)))
    return {"kind": "embed", "coords": encoding.coords, "extent": list(grid), "join": "cell", "tables": [_floats(outputs)]}


def _floats(tensor: Tensor) -> dict[str, str]:
    values = tensor.detach().to("cpu", torch.float32).contiguous().numpy()
    if sys.byteorder == "big":
        values = values.byteswap()
    return {"float32": base64.b64encode(values.tobytes()).decode("ascii")}


def _layer(layer: nn.Linear | nn.LayerNorm) -> Node:
    return {"weight": _floats(layer.weight), "bias": _floats(layer.bias)}


def _norm(layer: nn.Module) -> Node | None:
    return _layer(layer) if isinstance(layer, nn.LayerNorm) else None


def _fourier(e: Any) -> Node:
    gamma = e.gamma if isinstance(e.gamma, int | float) else None  # a range has no ring of its own
    return {"w_r": _floats(e.w_r), "bias": None if e.bias is None else _floats(e.bias), "gamma": gamma}


def _modulated(e: Any) -> Node:
    norms = {"norm_1": _norm(e.norm_1), "norm_2": _norm(e.norm_2)}
    return {"features": _node(e.features), "dense_1": _layer(e.dense_1), "dense_2": _layer(e.dense_2), **norms}


def _mlp(e: Any) -> Node:
    return {"w_1": _floats(e.hidden.w_1), "b_1": _floats(e.hidden.b_1), "dense_2": _layer(e.dense_2)}


def _waves(e: Any) -> Node:
    return {"depth": e.depth, "temperature": e.temperature}


_FIELDS: dict[type, tuple[str, Callable[[Any], Node]]] = {
    Zero: ("zero", lambda e: {}),
    FourierFeatures: ("fourier", _fourier),
    Sine: ("sine", _waves),
    MultiDimSine: ("mdsine", _waves),
    Embed: ("embed", lambda e: {"extent": list(e.extent), "join": e.join, "tables": [_floats(t) for t in e.tables]}),
    Modulated: ("modulated", _modulated),
    Dense: ("dense", lambda e: {"features": _node(e.features), "dense": _layer(e.dense)}),
    Scaled: ("scaled", lambda e: {"features": _node(e.features), "factor": float(e.factor)}),
    MLP: ("mlp", _mlp),
    Grouped: ("grouped", lambda e: {"encoder": _node(e.encoder), "groups": e.groups}),
    Flattened: ("flattened", lambda e: {"encoder": _node(e.encoder), "extent": list(e.extent)}),
}
