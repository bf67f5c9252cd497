"""What all tests share: a seed before each of them, and one small encoding of every method."""

from collections.abc import Callable

import hypothesis
import pytest
import torch
from torch import Tensor

import lff

# A busy machine is slow, not wrong; and a failure that was found once is to be found again.
hypothesis.settings.register_profile("lff", deadline=None, derandomize=True)
hypothesis.settings.load_profile("lff")

EXTENT, DEPTH = 8, 48


def small(name: str) -> tuple[lff.Encoding, Tensor]:
    """The encoding of a row name at a small size, and 20 positions for it."""
    coords = lff.METHODS[name].coords or 2
    encode = lff.build(name, coords=coords, depth=DEPTH, extent=(EXTENT,) * coords)
    return encode, torch.randint(EXTENT, (20, coords)).float()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=sorted(lff.METHODS))
def method(request: pytest.FixtureRequest) -> str:
    """Every row name in turn."""
    return request.param


@pytest.fixture
def relative_error() -> Callable[[Tensor, Tensor], float]:
    """Norm of the difference over the norm of the reference with its mean over positions taken off.

    Most of an MLP's output is the same everywhere and would hide an error in the part that matters.
    """

    def error(output: Tensor, reference: Tensor) -> float:
        centred = reference - reference.mean(0)
        return ((output.detach().double() - reference).norm() / centred.norm()).item()

    return error
