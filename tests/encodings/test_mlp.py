import torch
from torch import nn

import lff


def test_mlp_is_two_dense_layers_with_an_exact_gelu() -> None:
    encode = lff.MLP(2, 6, hidden=5).double()
    reference = nn.Sequential(nn.Linear(2, 5), nn.GELU(), nn.Linear(5, 6)).double()
    nn.init.normal_(encode.dense_2.bias)
    with torch.no_grad():
        reference[0].weight.copy_(encode.hidden.w_1)
        reference[0].bias.copy_(encode.hidden.b_1)
    reference[2].load_state_dict(encode.dense_2.state_dict())
    positions = torch.randn(9, 2).double()
    torch.testing.assert_close(encode(positions), reference(positions))


def test_cast_down_it_still_tells_neighbouring_positions_apart() -> None:
    """bfloat16 itself cannot tell 513 from 512; a first layer in bfloat16 would give both the same output."""
    encode = lff.MLP(1, 64, hidden=64).bfloat16()
    same, near = encode(torch.tensor([[512.0], [513.0]]))
    assert not torch.equal(same, near)


def test_output_of_normalised_positions_stays_below_the_scale() -> None:
    rms = torch.stack([lff.MLP(2, 64)(lff.grid((16, 16), normalize=True)).square().mean() for _ in range(30)]).mean().sqrt()
    assert 0.3 < rms < 1.0
