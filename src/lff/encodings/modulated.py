"""What comes after features: the MLP of Eq. 6, a dense layer, or a learned scale.

The paper does not say how their weights start. With PyTorch's defaults most of Algorithm 1's output would be constant, and the
part that varies with the position would have a root mean square of 0.004, against 0.02 for ViT's table and 1 for Reformer's.
Here each starts with an output of a given `scale`: weights are normal, with the variance that takes the mean square of what comes
in to that of what goes out, and biases are zero.
"""

import math

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.nn import functional

from lff import arguments
from lff.encodings.encoding import Encoding, as_input
from lff.encodings.fused import fused_mlp

#: E[GELU(z)^2] for z ~ N(0, 1).
GELU_POWER = 1 / 3 + 1 / (2 * math.pi * math.sqrt(3))


class Modulated(Encoding):
    """Eq. 6: any features followed by the MLP, GELU(f W_1 + B_1) W_2 + B_2, with the exact GELU.

    Args:
        features: encodes positions into features.
        depth: size of the output, D (of one group, where this is grouped).
        hidden: width of the MLP, |H|.
        layer_norm: LayerNorm before each of the two dense layers.
        dropout: share of hidden units dropped while training.
        scale: root mean square of the output at initialisation. How much of it varies with the position depends on how much the
            features do: nine tenths where gamma is well below the extent of the positions, four tenths where it is the extent,
            and more with `layer_norm`.
        impl: "torch"; "triton", one fused kernel for Fourier features and the MLP; or "auto", that where it serves. Other
            features are computed by themselves, as their own `impl` says.
    """

    def __init__(
        self,
        features: Encoding,
        depth: int,
        *,
        hidden: int = 32,
        layer_norm: bool = False,
        dropout: float = 0.0,
        scale: float = 1.0,
        impl: str = "auto",
    ) -> None:
        super().__init__(features.coords, depth)
        self.impl = impl  # before there are features: theirs is not ours to change
        self.rms = arguments.positive("scale", scale)
        self.features = features
        self.norm_1 = nn.LayerNorm(features.depth) if layer_norm else nn.Identity()
        self.dense_1 = nn.Linear(features.depth, arguments.whole("hidden", hidden))
        self.norm_2 = nn.LayerNorm(hidden) if layer_norm else nn.Identity()
        self.dropout = nn.Dropout(arguments.probability("dropout", dropout))
        self.dense_2 = nn.Linear(hidden, depth)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        normed = isinstance(self.norm_1, nn.LayerNorm)
        init_dense(self.dense_1, 1.0 if normed else self.features.rms, 1.0)
        init_dense(self.dense_2, 1.0 if normed else math.sqrt(GELU_POWER), self.rms)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        fused = fused_mlp(self, positions)
        if fused is not None:
            return fused
        f = as_input(self.features(positions), self.dense_1)
        h = functional.gelu(self.dense_1(self.norm_1(f)))
        y: Tensor = self.dense_2(self.dropout(self.norm_2(h)))
        return y


class Dense(Encoding):
    """Features followed by one dense layer, which the paper's appendix finds enough for some tasks.

    Args:
        features: encodes positions into features.
        depth: size of the output, D.
        scale: root mean square of the output at initialisation.
    """

    def __init__(self, features: Encoding, depth: int, *, scale: float = 1.0) -> None:
        super().__init__(features.coords, depth)
        self.rms = arguments.positive("scale", scale)
        self.features, self.dense = features, nn.Linear(features.depth, depth)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        init_dense(self.dense, self.features.rms, self.rms)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        y: Tensor = self.dense(as_input(self.features(positions), self.dense))
        return y


class Scaled(Encoding):
    """Features times one learned number, the appendix's "simpler scaling".

    Args:
        features: encodes positions into features.
        scale: root mean square of the output at initialisation.
    """

    def __init__(self, features: Encoding, *, scale: float = 1.0) -> None:
        super().__init__(features.coords, features.depth)
        self.rms = arguments.positive("scale", scale)
        self.features, self.factor = features, nn.Parameter(torch.empty(()))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.factor.fill_(self.rms / arguments.positive("features.rms", self.features.rms))

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        y: Tensor = self.features(positions) * self.factor
        return y


def init_dense(layer: nn.Linear, rms_in: float, rms_out: float) -> None:
    """Weights such that inputs of the one root mean square give outputs of the other; no bias."""
    fan_in = layer.in_features
    nn.init.normal_(layer.weight, std=rms_out / (arguments.positive("features.rms", rms_in) * math.sqrt(fan_in)))
    nn.init.zeros_(layer.bias)
