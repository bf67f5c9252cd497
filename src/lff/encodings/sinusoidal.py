"""Sinusoids of constant frequencies: Eq. 1 on every axis, and the appendix's multi-dimensional sine."""

import math

import torch
from einops import rearrange
from jaxtyping import Float, Num
from torch import Tensor

from lff import arguments, kernels
from lff.encodings.encoding import Encoding, exact_dtype
from lff.encodings.implementation import fused


class Sine(Encoding):
    """Eq. 1 on every axis: PE(p, 2d) = sin(p / 10000^(2d/D)), PE(p, 2d+1) = cos(p / 10000^(2d/D)); the axes are concatenated.

    D is the share of one axis, depth / coords. The dot product of two encodings falls off along the axes only, as a cross.

    Args:
        coords: coordinates of a position, any number.
        depth: size of the encoding; a multiple of 2 * coords.
        temperature: the longest wavelength over 2 pi.
        impl: "torch"; "triton", the fused kernels; or "auto", these where they serve.
    """

    rms = math.sqrt(1 / 2)

    def __init__(self, coords: int, depth: int, *, temperature: float = 10000.0, impl: str = "auto") -> None:
        super().__init__(coords, depth)
        self.impl = impl
        arguments.multiple("depth", depth, 2 * coords, "a sine and a cosine on each axis")
        self.temperature = arguments.positive("temperature", temperature)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        x = rearrange(positions.to(exact_dtype(positions, self.like)), "... c -> ... c 1")
        w = frequencies(self.temperature, self.depth // self.coords, x)
        dtype = self._output_dtype(x.device.type)
        if fused(self.impl, x, w, dtype=dtype):
            return rearrange(_fused_sines(x, rearrange(w, "d -> d 1"), dtype), "... c d -> ... (c d)")
        angles = x * w
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
        impl: "torch"; "triton", the fused kernels; or "auto", these where they serve.
    """

    rms = math.sqrt(1 / 2)

    def __init__(self, coords: int, depth: int, *, temperature: float = 10000.0, impl: str = "auto") -> None:
        super().__init__(coords, arguments.multiple("depth", depth, 2, "half sines, half cosines"))
        self.impl = impl
        self.temperature = arguments.positive("temperature", temperature)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        x = positions.to(exact_dtype(positions, self.like))
        w = [frequencies(self.temperature / 2**i, self.depth, x) for i in range(self.coords)]
        dtype = self._output_dtype(x.device.type)
        if fused(self.impl, x, *w, dtype=dtype):
            return _fused_sines(x, rearrange(w, "c d -> d c"), dtype)
        angles = x[..., :1] * w[0]
        for i in range(1, self.coords):
            angles = angles + x[..., i : i + 1] * w[i]
        return rearrange([angles.sin(), angles.cos()], "sin_cos ... d -> ... (d sin_cos)")

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, temperature={self.temperature}"


def _fused_sines(
    x: Float[Tensor, "*batch m"], w: Float[Tensor, "freqs m"], dtype: torch.dtype
) -> Float[Tensor, "*batch 2*freqs"]:
    """Sine and cosine of x W^T by the feature kernel, which has all cosines first, in turns."""
    cos, sin = kernels.fourier_features(x, w, scale=1.0, dtype=dtype).chunk(2, dim=-1)
    return rearrange(torch.stack([sin, cos], dim=-1), "... d sin_cos -> ... (d sin_cos)")  # one copy


def frequencies(temperature: float, depth: int, like: Float[Tensor, "..."]) -> Float[Tensor, " {depth}//2"]:
    """temperature^(-2d / depth) for d = 0, 1, ..., made anew at every call: a buffer would be rounded with the model."""
    d = torch.arange(0, depth, 2, dtype=like.dtype, device=like.device)
    return torch.exp(d * (-math.log(temperature) / depth))
