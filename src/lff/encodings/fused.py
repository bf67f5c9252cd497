"""Fourier features and the MLP behind them as one kernel, where it can stand for the layers of a `Modulated`."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lff import kernels
from lff.encodings.encoding import layer_dtype
from lff.encodings.implementation import fused, hooked

if TYPE_CHECKING:
    from lff.encodings.modulated import Modulated

NORMS = (nn.LayerNorm, nn.Identity)
#: The layers behind the features, with the classes that the constructor gives them.
LAYERS = {"norm_1": NORMS, "dense_1": (nn.Linear,), "norm_2": NORMS, "dropout": (nn.Dropout,), "dense_2": (nn.Linear,)}


def fused_mlp(encoding: "Modulated", positions: Tensor) -> Tensor | None:
    """What a `Modulated` gives, by one kernel; None where its layers must be called."""
    from lff.encodings.fourier import FourierFeatures  # which needs Modulated, which needs this

    # From the dict, since an attribute of a module takes a microsecond and there are many.
    parts: dict[str, Any] = encoding._modules
    f, *layers = (parts[name] for name in ("features", *LAYERS))
    if not isinstance(f, FourierFeatures) or "torch" in (encoding.impl, f.impl):
        return None
    if encoding.impl == "auto" and positions.device.type not in kernels.DEVICES:  # soon said where there is no GPU
        return None
    norm_1, dense_1, norm_2, dropout, dense_2 = layers
    unless = _changed("features", f, (FourierFeatures,)) or _other(layers)
    if unless is not None:
        fused(encoding.impl, positions, dtype=torch.float32, unless=unless)
        return None
    dtype = layer_dtype(dense_1, positions.device.type)
    dense = (dense_1.weight, dense_1.bias, dense_2.weight, dense_2.bias)
    norms = (norm_1.weight, norm_1.bias, norm_2.weight, norm_2.bias) if isinstance(norm_1, nn.LayerNorm) else ()
    w_r, bias = f.w_r, f.bias
    if not fused(encoding.impl, positions, w_r, bias, *dense, *norms, dtype=dtype):
        return None
    from lff.kernels.modulated import unchecked  # registers the operators, and so waits until they are wanted

    out: Tensor = unchecked(
        positions,
        w_r,
        bias,
        *dense,
        norm_1=norms[:2] or None,
        norm_2=norms[2:] or None,
        eps=norm_1.eps if norms else 1e-5,
        dropout=dropout.p if dropout.training else 0.0,
        dtype=dtype,
    )
    return out


def _other(layers: list[Any]) -> str | None:
    """How the layers are not those of the constructor: then only they know what they compute."""
    for (name, kinds), layer in zip(LAYERS.items(), layers, strict=True):
        reason = _changed(name, layer, kinds)
        if reason is not None:
            return reason
    norm_1, dense_1, norm_2, dropout, dense_2 = layers
    normed = type(norm_1) is nn.LayerNorm
    if type(norm_1) is not type(norm_2) or (normed and norm_1.eps != norm_2.eps):
        return "norm_1 and norm_2 are not alike"
    if dense_1.bias is None or dense_2.bias is None or (normed and (norm_1.bias is None or norm_2.bias is None)):
        return "a layer has no bias"
    if dense_1.weight.dtype != dense_2.weight.dtype:
        return "dense_1 and dense_2 differ in their dtypes"
    return "all units are dropped" if dropout.p >= 1 else None


def _changed(name: str, layer: nn.Module, kinds: tuple[type[nn.Module], ...]) -> str | None:
    if type(layer) not in kinds:
        return f"{name} is a {type(layer).__name__}"
    return f"{name} has hooks, which a kernel would not call" if hooked(layer) else None
