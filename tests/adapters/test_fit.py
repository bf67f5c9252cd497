import copy

import pytest
import torch
from hosts import HOSTS

import lff

# The hosts' own deprecation notices are not ours to mend.
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]


def smooth_table(size: int, depth: int) -> torch.Tensor:
    """A table of low rank that varies slowly, as trained ones do."""
    encode = lff.LearnableFourier(2, depth, features=16, hidden=8, gamma=size / 2).double()
    return encode(lff.grid((size, size))).detach().float()


def test_a_table_of_low_rank_is_reproduced_by_as_many_hidden_units() -> None:
    table = smooth_table(8, 64)
    encode = lff.LearnableFourier(2, 64, hidden=24, gamma=4.0)
    left = lff.fit(encode, lff.grid((8, 8)), table)
    assert left.closed is not None
    assert left.error <= left.closed + 1e-6
    assert left.error < 0.01
    out = encode(lff.grid((8, 8))).detach()
    centred = table - table.reshape(-1, 64).mean(0)
    assert ((out - table).norm() / centred.norm()).item() == pytest.approx(left.error, rel=0.01)


def test_steps_lower_the_error_that_the_closed_form_leaves() -> None:
    table = smooth_table(8, 64)
    torch.manual_seed(1)
    encode = lff.LearnableFourier(2, 64, hidden=8, gamma=8.0)
    still = copy.deepcopy(encode)
    without = lff.fit(still, lff.grid((8, 8)), table, steps=0)
    moved = lff.fit(encode, lff.grid((8, 8)), table)
    assert without.error == pytest.approx(without.closed, rel=1e-3)
    assert moved.closed == pytest.approx(without.closed, rel=1e-6)
    assert moved.error < 0.7 * without.error


# Noise is what no last layer follows: the closed form leaves about as much of it as there is.
@pytest.mark.parametrize(("noise", "enough"), [(8e-4, True), (1.5e-3, False)])
def test_frequencies_move_only_where_the_closed_form_leaves_more_than_a_thousandth(noise: float, enough: bool) -> None:
    encode, grid = lff.LearnableFourier(2, 64, features=16, hidden=8, gamma=4.0), lff.grid((8, 8))
    table = encode(grid).detach()
    table += noise * (table - table.mean((0, 1))).square().mean().sqrt() * torch.randn_like(table)
    torch.nn.init.normal_(encode.encoder.dense_2.weight)
    before = encode.encoder.features.w_r.detach().clone()
    left = lff.fit(encode, grid, table, ridge=1e-12)
    assert left.closed is not None
    assert (left.closed < 1e-3) == enough
    assert torch.equal(encode.encoder.features.w_r, before) == enough
    assert left.error < 1e-3 + noise


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_share_the_layer_that_is_solved_for(groups: int) -> None:
    truth = lff.LearnableFourier(4, 32, features=8, hidden=6, gamma=3.0, groups=groups)
    boxes = torch.rand(200, 4) * 10
    encode = copy.deepcopy(truth)
    torch.nn.init.normal_(encode.encoder.dense_2.weight)
    assert lff.fit(encode, boxes, truth(boxes), steps=0, ridge=1e-12).error < 1e-4


@pytest.mark.parametrize(
    "encode",
    [
        lff.Embed((6, 6), 16, join="cell"),
        lff.MLP(2, 16, hidden=64),
        lff.Dense(lff.FourierFeatures(2, 64, gamma=2.0), 16),
        lff.Grouped(lff.Dense(lff.Sine(1, 8), 8), 2),
        lff.Modulated(lff.FourierFeatures(2, 64, gamma=2.0, learnable=False), 16, hidden=64),
    ],
    ids=lambda encode: type(encode).__name__,
)
def test_other_encodings_are_fitted_too(encode: lff.Encoding) -> None:
    encode = copy.deepcopy(encode)
    truth = copy.deepcopy(encode)
    for parameter in truth.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    positions = lff.grid((6, 6))
    before = (encode(positions) - truth(positions)).norm()
    left = lff.fit(encode, positions, truth(positions).detach())
    assert (encode(positions) - truth(positions)).norm() < 0.6 * before
    assert left.error < 0.7


def test_features_alone_take_steps() -> None:
    truth, encode = lff.FourierFeatures(2, 8, gamma=5.0), lff.FourierFeatures(2, 8, gamma=5.0)
    with torch.no_grad():
        encode.w_r.copy_(truth.w_r + 0.02)
    assert lff.fit(encode, lff.grid((6, 6)), truth(lff.grid((6, 6)))).error < 0.01


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_dtype_device_and_mode_stay(dtype: torch.dtype) -> None:
    encode = lff.LearnableFourier(2, 16, gamma=3.0).to(dtype).train()
    lff.fit(encode, lff.grid((5, 5)), smooth_table(5, 16), steps=5)
    assert encode.training
    assert encode(torch.zeros(2)).dtype == dtype
    assert all(p.grad is None for p in encode.parameters())


def test_a_swap_that_fits_goes_on_where_the_table_was() -> None:
    case = HOSTS["ViT"]
    model = case.make().eval()
    with torch.no_grad():  # a smooth table, as a trained one
        model.vit.embeddings.position_embeddings[:, 1:] = smooth_table(4, 32).reshape(1, 16, 32)
    before = case.run(model, case.size)
    lff.swap(model, lff.LearnableFourier(2, 32, hidden=32, gamma=2.0), fit=True)
    after = case.run(model, case.size)
    assert (after - before).norm() < 0.01 * before.norm()
    assert case.run(model, case.taller).isfinite().all()


def test_it_works_where_gradients_are_off() -> None:
    for off in (torch.no_grad, torch.inference_mode):
        encode = lff.LearnableFourier(2, 16, hidden=24, gamma=3.0)
        with off():
            assert lff.fit(encode, lff.grid((5, 5)), smooth_table(5, 16)).error < 0.05


def test_a_fit_that_leaves_much_says_so() -> None:
    case = HOSTS["ViT"]
    model = case.make().eval()
    with pytest.warns(UserWarning, match=r"leaves .* of the table; more hidden units"):
        lff.swap(model, lff.LearnableFourier(2, 32, hidden=1, gamma=50.0), fit=True)


def test_bad_input_is_named_and_changes_nothing() -> None:
    encode, grid = lff.LearnableFourier(2, 16), lff.grid((4, 4))
    before = copy.deepcopy(encode.state_dict())
    with pytest.raises(ValueError, match=r"table must have shape \(4, 4, 16\), a row for each position, got \(4, 4, 8\)"):
        lff.fit(encode, grid, torch.zeros(4, 4, 8))
    with pytest.raises(ValueError, match="table must be finite"):
        lff.fit(encode, grid, torch.full((4, 4, 16), torch.nan))
    with pytest.raises(ValueError, match="encoding must have something to learn, got a Sine"):
        lff.fit(lff.Sine(2, 16), grid, torch.zeros(4, 4, 16))
    with pytest.raises(ValueError, match="steps must be a whole number of at least 0, got -1"):
        lff.fit(encode, grid, torch.zeros(4, 4, 16), steps=-1)
    assert all(torch.equal(value, before[name]) for name, value in encode.state_dict().items())
