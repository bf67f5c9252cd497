"""Fused Triton kernels of the encodings, forward and backward; the torch versions in `lff.encodings` are their specification.

Their operators are registered with PyTorch when one of the two functions is first asked for, or by importing
`lff.kernels.modulated`; Triton itself is imported when a kernel first runs. Neither makes `import lff` slower.
"""

import importlib
from typing import TYPE_CHECKING, Any

from lff.kernels.serving import DEVICES, obstacle

if TYPE_CHECKING:
    from lff.kernels.features import fourier_features
    from lff.kernels.modulated import fourier_mlp

__all__ = ["DEVICES", "fourier_features", "fourier_mlp", "obstacle"]

_HOMES = {"fourier_features": "lff.kernels.features", "fourier_mlp": "lff.kernels.modulated"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
