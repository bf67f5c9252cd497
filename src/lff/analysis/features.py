"""The part of an encoding that is looked at, and the places it is looked at from."""

import torch
from jaxtyping import Float
from torch import Tensor

from lff import arguments
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.encodings.groups import Grouped
from lff.encodings.modulated import Dense, Modulated, Scaled

#: Where the paper's figures look from along an axis of 64 and of 42 cells: its appendix lists the positions.
_LANDMARKS = {64: (4, 31, 57), 42: (5, 21, 38)}


def features(encoding: Encoding) -> Encoding:
    """What an encoding knows of a point before an MLP: r_x of Eq. 2 for Algorithm 1, as the paper's appendix looks at it.

    Groups and what comes after features are taken off, so the result may take fewer coordinates: a corner's 2 instead of a box's
    4. An encoding without such parts is returned as it is.
    """
    while isinstance(encoding, Grouped | Modulated | Dense | Scaled):
        encoding = encoding.encoder if isinstance(encoding, Grouped) else encoding.features
    return encoding


def landmarks(size: int | tuple[int, int]) -> Float[Tensor, "5 2"]:
    """Five cells to look from: near the corners top left, top right, the centre, bottom left, bottom right.

    On 64x64 and 42x42 those of the paper's figures; elsewhere a tenth of the size from the border.
    """
    rows, cols = arguments.sizes("size", size) if isinstance(size, tuple) else (arguments.whole("size", size),) * 2
    (top, middle, bottom), (left, centre, right) = _along(rows), _along(cols)
    return torch.tensor([(top, left), (top, right), (middle, centre), (bottom, left), (bottom, right)], dtype=torch.float32)


def _along(size: int) -> tuple[int, int, int]:
    return _LANDMARKS.get(size, (size // 10, (size - 1) // 2, size - 1 - size // 10))


def table(rows: Float[Tensor, "n depth"]) -> Encoding:
    """An encoding of n places in a row from their vectors: the position table of a trained model, to be looked at like ours."""
    encoding = Embed(len(rows), rows.shape[1])
    with torch.no_grad():
        encoding.tables[0].copy_(rows)
    return encoding
