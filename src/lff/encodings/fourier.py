"""Learnable Fourier features: Eq. 2 to 6 and Algorithm 1 of Li et al., NeurIPS 2021 (arXiv:2106.02795).

Shapes: m coordinates in a group, freqs = |F|/2, and {self.x} for a size fixed at construction.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Num
from torch import Tensor, nn

from lff import arguments, kernels
from lff.encodings.encoding import ExactEncoding, phases
from lff.encodings.groups import Grouped
from lff.encodings.implementation import fused
from lff.encodings.modulated import Modulated

#: A length scale, or a range of them.
Gamma = int | float | Sequence[int | float]


def fourier_features(
    x: Num[Tensor, "*batch m"], w_r: Float[Tensor, "freqs m"], bias: Float[Tensor, " freqs"] | None = None
) -> Float[Tensor, "*batch 2*freqs"]:
    """Eq. 2: r_x = [cos(x W_r^T) || sin(x W_r^T)] / sqrt(|F|).

    By Eq. 3 the dot product r_x . r_y depends on x - y alone, whatever W_r has become by training; a bias, which shifts both
    phases alike, does not change it.
    """
    angles = phases(x, w_r, bias)
    return torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(2 * len(w_r))


class _FourierFeatures(torch.autograd.Function):
    """`fourier_features` for eager mode: few passes over memory, which is what takes the time on a CPU.

    The backward needs no sine: cos' = -sin and sin' = cos are both in the output already.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, w_r: Tensor, bias: Tensor | None) -> Tensor:
        angles = phases(x, w_r.T.contiguous().T, bias)  # a column is read at a time: its numbers are to lie side by side
        return torch.cat([angles.cos(), angles.sin_()], dim=-1).div_(math.sqrt(2 * len(w_r)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        x, w_r, _ = inputs
        ctx.save_for_backward(x, w_r, output)
        ctx.save_for_forward(x, w_r, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, w_r, r_x = ctx.saved_tensors
        (cos, sin), (grad_cos, grad_sin) = r_x.chunk(2, dim=-1), grad.chunk(2, dim=-1)
        grad_angles = torch.addcmul(grad_sin * cos, grad_cos, sin, value=-1)
        need_x, need_w_r, need_bias = ctx.needs_input_grad
        grad_x = grad_angles @ w_r.to(grad_angles.dtype) if need_x else None
        flat_x, flat = rearrange(x.to(grad_angles.dtype), "... m -> (...) m"), rearrange(grad_angles, "... f -> (...) f")
        # Transposed twice: a product with its narrow operand first is up to ten times as fast on a CPU.
        return grad_x, (flat_x.T @ flat).T if need_w_r else None, flat.sum(0) if need_bias else None

    @staticmethod
    def jvp(ctx: Any, x_t: Tensor | None, w_r_t: Tensor | None, bias_t: Tensor | None) -> Tensor:
        x, w_r, r_x = ctx.saved_tensors
        cos, sin = r_x.chunk(2, dim=-1)
        angles_t = torch.zeros_like(cos)
        if x_t is not None:
            angles_t = angles_t + phases(x_t, w_r)
        if w_r_t is not None:
            angles_t = angles_t + phases(x, w_r_t)
        if bias_t is not None:
            angles_t = angles_t + bias_t
        return torch.cat([-sin * angles_t, cos * angles_t], dim=-1)


class FourierFeatures(ExactEncoding):
    """Eq. 2 with the W_r of Eq. 4: features whose dot product is a kernel, a ball of width `gamma` around every position.

    At initialisation r_x . r_y is close to exp(-|x - y|^2 / (2 gamma^2)) / 2. The factors of 2 are what Eq. 2 and 4 give; Eq. 5
    has neither (docs/errata.md, P2 and P3).

    Args:
        coords: coordinates of a position, M.
        features: number of Fourier features, |F|; half are cosines, half are sines.
        gamma: length scale of the kernel at initialisation, in the units of the positions. A pair, (1.0, 16.0), is not the
            paper's: every frequency then has a gamma of its own, drawn log-uniformly between the two, so that no single scale
            has to be chosen. From the grid's spacing to its extent is a good range.
        init: "normal" draws W_r from N(0, gamma^-2), a variance; "uniform" from [0, 1/gamma], which at gamma = 1 is the paper's
            ablation.
        learnable: False keeps W_r as it was drawn (the paper's Fixed-Fourier).
        bias: add a learnable phase to every frequency, as the Reformer run did that the paper's parameter count belongs to.
        impl: "torch"; "triton", the fused kernels; or "auto", these where they serve.
    """

    w_r: Tensor
    bias: Tensor | None

    def __init__(
        self,
        coords: int,
        features: int,
        *,
        gamma: Gamma = 1.0,
        init: str = "normal",
        learnable: bool = True,
        bias: bool = False,
        impl: str = "auto",
    ) -> None:
        super().__init__(coords, arguments.multiple("features", features, 2, "half cosines, half sines"))
        self.impl = impl
        self.gamma = arguments.scales("gamma", gamma)
        self.init = arguments.choice("init", init, ("normal", "uniform"))
        self.learnable = learnable
        w_r = torch.empty(features // 2, coords)
        if learnable:
            self.w_r = nn.Parameter(w_r)
        else:
            self.register_buffer("w_r", w_r)
        self.register_parameter("bias", nn.Parameter(torch.empty(features // 2)) if bias else None)
        self.rms = 1 / math.sqrt(2 * features)  # |r_x|^2 is 1/2 at every position
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        if isinstance(self.gamma, tuple):
            low, high = self.gamma
            gammas = low * (high / low) ** torch.rand(len(self.w_r), 1, device=self.w_r.device)
            (self.w_r.normal_() if self.init == "normal" else self.w_r.uniform_()).div_(gammas)
        elif self.init == "normal":
            self.w_r.normal_(std=1 / self.gamma)  # Eq. 4 states the variance, gamma^-2
        else:
            self.w_r.uniform_(0, 1 / self.gamma)
        if self.bias is not None:
            self.bias.zero_()

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        dtype = self._output_dtype(positions.device.type)
        if fused(self.impl, positions, self.w_r, self.bias, dtype=dtype):
            return kernels.fourier_features(positions, self.w_r, self.bias, dtype=dtype)
        if torch.compiler.is_compiling():  # the compiler finds its own backward
            return fourier_features(positions, self.w_r, self.bias)
        r_x: Tensor = _FourierFeatures.apply(positions, self.w_r, self.bias)
        return r_x

    @property
    def variance(self) -> float:
        """Of the normal distribution that W_r is drawn from: gamma^-2, or its mean over a range of gammas."""
        if not isinstance(self.gamma, tuple):
            return self.gamma**-2
        low, high = self.gamma
        return (low**-2 - high**-2) / (2 * math.log(high / low)) if low < high else low**-2

    def extra_repr(self) -> str:
        how = f"gamma={self.gamma}, init={self.init!r}, learnable={self.learnable}, bias={self.bias is not None}"
        return f"{super().extra_repr()}, {how}"


class LearnableFourier(Grouped):
    """Algorithm 1: encodes a position by a learned function of its coordinates, so no position is ever unseen.

    The coordinates are split into `groups` of equal size. Every group passes through the same features (line 1, Eq. 2:
    `FourierFeatures`) and the same MLP (line 2, Eq. 6: `Modulated`); the results are concatenated (line 3: `Grouped`).

    Args:
        coords: coordinates of a position: 2 for (row, col), 4 for (top, left, bottom, right).
        depth: size of the encoding, D.
        features: number of Fourier features of a group, |F|; half are cosines, half are sines. By default depth // groups.
        hidden: width of the MLP, |H|.
        gamma: length scale of the kernel at initialisation, in the units of the positions (Eq. 4); a pair spreads it over
            the scales between, see `FourierFeatures`.
        groups: number of coordinate groups, G.
        layer_norm: LayerNorm before each of the two dense layers, as in the paper's Reformer experiments.
        dropout: share of hidden units dropped while training, as 0.2 in the paper's widget captioning.
        scale: root mean square of the output at initialisation.
        impl: "torch"; "triton", the fused kernels; or "auto", these where they serve.
    """

    def __init__(
        self,
        coords: int,
        depth: int,
        *,
        features: int | None = None,
        hidden: int = 32,
        gamma: Gamma = 1.0,
        groups: int = 1,
        layer_norm: bool = False,
        dropout: float = 0.0,
        scale: float = 1.0,
        impl: str = "auto",
    ) -> None:
        coords, depth = Grouped.split(coords, depth, groups)
        r_x = FourierFeatures(coords, depth if features is None else features, gamma=gamma)
        super().__init__(Modulated(r_x, depth, hidden=hidden, layer_norm=layer_norm, dropout=dropout, scale=scale), groups)
        self.impl = impl
