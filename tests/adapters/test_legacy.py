"""Against the implementations themselves: the installed package, and the other two rebuilt from their published formula."""

import pytest
import torch
from learnable_fourier_positional_encoding import LearnableFourierPositionalEncoding
from torch import nn

import lff

# The hosts' own deprecation notices are not ours to mend.
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("groups", [1, 2])
def test_the_package_s_weights_give_the_package_s_outputs(groups: int) -> None:
    theirs = LearnableFourierPositionalEncoding(groups, 2, 20, 12, 16, gamma=2.0)
    ours = lff.load_legacy(theirs.state_dict(), "learnable-fourier-positional-encoding", groups=groups)
    x = torch.randn(9, groups, 2) * 10
    torch.testing.assert_close(ours(x.reshape(9, -1)), theirs(x), atol=1e-6, rtol=1e-5)


def test_jhlew_s_weights_give_its_outputs() -> None:
    """Its W_r is a bare parameter [|F|/2, coordinates]; the MLP is called as in the package."""
    w_r, mlp = torch.randn(10, 3), nn.Sequential(nn.Linear(20, 12), nn.GELU(), nn.Linear(12, 8))
    state = {"Wr": w_r, **{f"mlp.{key}": value for key, value in mlp.state_dict().items()}}
    ours = lff.load_legacy(state, "JHLew")
    x = torch.randn(9, 3)
    angles = x @ w_r.T
    theirs = mlp(torch.cat([angles.cos(), angles.sin()], -1) / 20**0.5)
    torch.testing.assert_close(ours(x), theirs, atol=1e-6, rtol=1e-5)


def test_lightglue_s_weights_give_its_rotations() -> None:
    """[2, batch, 1, points, depth]: cosines, then sines, every frequency twice."""
    w_r = torch.randn(16, 2)
    ours = lff.load_legacy({"Wr.weight": w_r}, "LightGlue")
    points = torch.rand(2, 7, 2) * 2 - 1
    angles = points @ w_r.T
    theirs = torch.stack([angles.cos(), angles.sin()]).unsqueeze(-3).repeat_interleave(2, dim=-1)
    assert theirs.shape == (2, 2, 1, 7, 32)
    torch.testing.assert_close(ours(points), theirs, atol=1e-6, rtol=1e-5)


def test_other_weights_are_refused_with_both_lists_of_keys() -> None:
    with pytest.raises(ValueError, match=r"state_dict must have the keys \['Wr', .*\] for kind 'JHLew', got \['weight'\]"):
        lff.load_legacy({"weight": torch.zeros(2, 2)}, "JHLew")
    with pytest.raises(ValueError, match=r"kind must be one of 'learnable-fourier-positional-encoding', .*, got 'kornia'"):
        lff.load_legacy({}, "kornia")
