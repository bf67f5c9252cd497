"""The frequencies of Fourier features: where W_r lies, before and after training."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lff.analysis.features import features
from lff.encodings.encoding import Encoding
from lff.encodings.fourier import FourierFeatures


@dataclass(frozen=True)
class Spectrum:
    """W_r, a row a frequency and a column a coordinate, in radians a unit of position."""

    w_r: Float[Tensor, "freqs m"]

    @property
    def mean(self) -> float:
        """Of all weights, as Eq. 10 takes it."""
        return float(self.w_r.mean())

    @property
    def std(self) -> float:
        """Of all weights around their mean, as Eq. 10 takes it: 1 / gamma at initialisation."""
        return float(self.w_r.std(correction=0))

    @property
    def wavelengths(self) -> Float[Tensor, " freqs"]:
        """2 pi / |w|, in units of position."""
        lengths: Tensor = torch.linalg.vector_norm(self.w_r, dim=-1)
        return 2 * math.pi / lengths

    @property
    def stretch(self) -> float:
        """How far the ball is from round next to its centre, where similarity is 1 - |W_r d|^2 / |F|.

        The ratio of its longest to its shortest axis: the root of that of the eigenvalues of W_r^T W_r. 1 where it is round.
        """
        values = torch.linalg.svdvals(self.w_r)
        return float(values.max() / values.min())


def spectrum(encoding: Encoding) -> Spectrum:
    """The frequencies of an encoding that has Fourier features, Algorithm 1 for instance."""
    found = features(encoding)
    if not isinstance(found, FourierFeatures):
        raise ValueError(f"encoding must have Fourier features, got a {type(encoding).__name__} with {type(found).__name__}")
    return Spectrum(found.w_r.detach().clone())
