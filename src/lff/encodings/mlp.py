"""The MLP-only encoding: Eq. 6 on the coordinates themselves, the paper's baseline without Fourier features."""

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn
from torch.nn import functional

from lff import arguments
from lff.encodings.encoding import Encoding, ExactEncoding, as_input, phases
from lff.encodings.modulated import GELU_POWER, init_dense


class HiddenUnits(ExactEncoding):
    """GELU(x W_1 + B_1) on positions, in float32 or better.

    Args:
        coords: coordinates of a position.
        hidden: number of units, |H|.
    """

    rms = GELU_POWER**0.5

    def __init__(self, coords: int, hidden: int) -> None:
        super().__init__(coords, arguments.whole("hidden", hidden))
        self.w_1 = nn.Parameter(torch.empty(hidden, coords))
        self.b_1 = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        # As nn.Linear does it: without random biases all units would bend at the origin, a corner of every grid.
        bound = self.coords**-0.5
        nn.init.uniform_(self.w_1, -bound, bound)
        nn.init.uniform_(self.b_1, -bound, bound)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        return functional.gelu(phases(positions, self.w_1, self.b_1))


class MLP(Encoding):
    """GELU(x W_1 + B_1) W_2 + B_2: what is left of Algorithm 1 without its first line.

    It wants coordinates of order one (normalised, or divided by the extent): over hundreds of cells its output grows with the
    position.

    Args:
        coords: coordinates of a position.
        depth: size of the encoding, D.
        hidden: width, |H|.
        dropout: share of hidden units dropped while training.
        scale: bound of the output's root mean square at initialisation, for coordinates of order one.
    """

    def __init__(self, coords: int, depth: int, *, hidden: int = 32, dropout: float = 0.0, scale: float = 1.0) -> None:
        super().__init__(coords, depth)
        self.rms = arguments.positive("scale", scale)
        self.hidden = HiddenUnits(coords, hidden)
        self.dropout = nn.Dropout(arguments.probability("dropout", dropout))
        self.dense_2 = nn.Linear(hidden, depth)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        init_dense(self.dense_2, self.hidden.rms, self.rms)

    def encode(self, positions: Num[Tensor, "*batch {self.coords}"]) -> Float[Tensor, "*batch {self.depth}"]:
        y: Tensor = self.dense_2(self.dropout(as_input(self.hidden(positions), self.dense_2)))
        return y
