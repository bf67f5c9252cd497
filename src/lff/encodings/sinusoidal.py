"""Sinusoids of constant frequencies: Eq. 1 on every axis, and the appendix's multi-dimensional sine."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Num
from torch import Tensor

from lff import arguments
from lff.encodings.encoding import Encoding, exact_dtype


class Sine(Encoding):
    """Eq. 1 on every axis: PE(p, 2d) = sin(p / 10000^(2d/D)), PE(p, 2d+1) = cos(p / 10000^(2d/D)); the axes are concatenated.

    D is the share of one axis, depth / coords. The dot product of two encodings falls off along the axes only, as a cross.

    Args:
        coords: coordinates of a position, any number.
        depth: size of the encoding; a multiple of 2 * coords.
        temperature: the longest wavelength over 2 pi.
    """

    rms = math.sqrt(1 / 2)

    def __init__(self, coords: int, depth: int, *, temperature: float = 10000.0) -> None:
        super().__init__(coords, depth)
        arguments.multiple("depth", depth, 2 * coords, "a sine and a cosine on each axis")
        self.temperature = arguments.positive("temperature", temperature)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        x = positions.to(exact_dtype(positions, self.like))
        angles = x[..., None] * frequencies(self.temperature, self.depth // self.coords, x)
        return rearrange([angles.sin(), angles.cos()], "sin_cos ... c d -> ... (c d sin_cos)")

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature}"


class MultiDimSine(Encoding):
    """The appendix's MD-Sine: PE(p, 2d) = sin(x / 10000^(2d/D) + y / 5000^(2d/D)), and the cosine of the same at 2d+1.

    Constant frequencies in more than one dimension: what Eq. 2 would be with W_r chosen by hand. The paper defines it for two
    coordinates; here every further one halves the temperature again (10000, 5000, 2500, ...).

    Args:
        coords: coordinates of a position.
        depth: size of the encoding, even.
        temperature: that of the first coordinate.
    """

    rms = math.sqrt(1 / 2)

    def __init__(self, coords: int, depth: int, *, temperature: float = 10000.0) -> None:
        super().__init__(coords, arguments.multiple("depth", depth, 2, "half sines, half cosines"))
        self.temperature = arguments.positive("temperature", temperature)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        x = positions.to(exact_dtype(positions, self.like))
        angles = x[..., :1] * frequencies(self.temperature, self.depth, x)
        for i in range(1, self.coords):
            angles = angles + x[..., i : i + 1] * frequencies(self.temperature / 2**i, self.depth, x)
        return rearrange([angles.sin(), angles.cos()], "sin_cos ... d -> ... (d sin_cos)")

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature}"


def frequencies(temperature: float, depth: int, like: Float[Tensor, "..."]) -> Float[Tensor, " {depth}//2"]:
    """temperature^(-2d / depth) for d = 0, 1, ..., made anew at every call: a buffer would be rounded with the model."""
    d = torch.arange(0, depth, 2, dtype=like.dtype, device=like.device)
    return torch.exp(d * (-math.log(temperature) / depth))
