"""What holds for every encoding, run over every row name: a new method is tested by being in the table."""

import copy
import io
import pickle
import re

import pytest
import torch
from torch import nn

import lff
from conftest import DEPTH, EXTENT, small


def test_encodes_any_batch_shape_position_by_position(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    whole = encode(positions)
    assert whole.shape == (20, DEPTH)
    torch.testing.assert_close(encode(positions.reshape(2, 5, 2, -1)), whole.reshape(2, 5, 2, DEPTH))
    for position, row in zip(positions, whole, strict=True):
        torch.testing.assert_close(encode(position), row)


def test_takes_an_empty_batch_and_gives_zero_gradients(method: str) -> None:
    encode, positions = small(method)
    empty = encode(positions[:0])
    assert empty.shape == (0, DEPTH)
    if empty.requires_grad:
        empty.sum().backward()
        assert all(p.grad is not None and not p.grad.any() for p in encode.parameters())


def test_every_parameter_learns(method: str) -> None:
    encode, positions = small(method)
    if list(encode.parameters()):
        (encode(positions) * torch.randn(20, DEPTH)).sum().backward()
    for name, parameter in encode.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_integer_half_and_double_positions_give_the_same_encoding(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    expected = encode(positions)
    for dtype in (torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float64):
        actual = encode(positions.to(dtype))
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_output_has_the_dtype_the_module_was_cast_to(method: str, dtype: torch.dtype) -> None:
    encode, positions = small(method)
    assert encode.to(dtype)(positions).dtype == dtype
    assert encode.to(torch.float32)(positions).dtype == torch.float32


def test_output_has_the_dtype_that_a_linear_layer_has_under_autocast(method: str) -> None:
    encode, positions = small(method)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert encode(positions).dtype == nn.Linear(2, 3)(torch.ones(2)).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        assert encode(positions).dtype == torch.float32


def test_double_is_computed_in_double(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    in_double = encode.double()(positions.double())
    torch.testing.assert_close(in_double, _in_float(encode, positions).double(), rtol=1e-4, atol=1e-4)
    if "Embed" not in method and method != "none":  # a table's entry is the same number in both
        assert not torch.equal(in_double, _in_float(encode, positions).double())


def _in_float(encode: lff.Encoding, positions: torch.Tensor) -> torch.Tensor:
    return copy.deepcopy(encode).float()(positions)


def test_state_dict_restores_the_encoding(method: str) -> None:
    (encode, positions), (other, _) = small(method), small(method)
    other.load_state_dict(encode.state_dict())
    assert torch.equal(other.eval()(positions), encode.eval()(positions))


def test_state_dict_has_no_entry_that_is_not_learned_or_drawn(method: str) -> None:
    encode, _ = small(method)
    drawn = {"w_r"} if "Fixed" in method else set()
    assert {key.split(".")[-1] for key in encode.state_dict()} - {
        name.split(".")[-1] for name, _ in encode.named_parameters()
    } == drawn


def test_deepcopy_and_pickle_are_independent_and_equal(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    expected = encode(positions)
    for clone in (copy.deepcopy(encode), pickle.loads(pickle.dumps(encode))):
        assert torch.equal(clone(positions), expected)
        assert not {p.data_ptr() for p in clone.parameters()} & {p.data_ptr() for p in encode.parameters()}


def test_saved_weights_load_without_pickle(method: str) -> None:
    encode, _ = small(method)
    torch.save(encode.state_dict(), file := io.BytesIO())
    file.seek(0)
    encode.load_state_dict(torch.load(file, weights_only=True))


def test_runs_on_the_meta_device_and_is_made_real_by_reset_parameters(method: str) -> None:
    real, positions = small(method)
    with torch.device("meta"):
        encode = lff.build(method, coords=real.coords, depth=DEPTH, extent=(EXTENT,) * real.coords)
    out = encode(positions.to("meta"))
    assert out.is_meta
    assert out.shape == (20, DEPTH)
    encode = encode.to_empty(device="cpu")
    for tensor in encode.state_dict().values():
        tensor.fill_(torch.nan)
    torch.manual_seed(1)
    for module in encode.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    rms = encode.eval()(positions).square().mean().sqrt()
    assert rms.isfinite()
    assert (rms > 0) == (method != "none")


def test_dropout_acts_while_training_only() -> None:
    for method in ("Learnable-Fourier+MLP", "MLP"):
        encode = lff.build(method, coords=2, depth=DEPTH, dropout=0.5)
        positions = torch.rand(20, 2)
        assert not torch.equal(encode(positions), encode(positions))
        encode.eval()
        assert torch.equal(encode(positions), encode(positions))


@pytest.mark.plain
def test_wrong_positions_raise_and_say_what_was_expected(method: str) -> None:
    encode, positions = small(method)
    coords = encode.coords
    with pytest.raises(ValueError, match=rf"positions must have shape \[\.\.\., {coords}\] .* got \(20, {coords + 1}\)"):
        encode(torch.zeros(20, coords + 1))
    with pytest.raises(ValueError, match=rf"positions must have shape \[\.\.\., {coords}\] .* got \(\)"):
        encode(torch.tensor(1.0))
    for dtype in (torch.bool, torch.complex64):
        with pytest.raises(ValueError, match=rf"positions must be real numbers, got {dtype}"):
            encode(positions.to(dtype))


# The methods whose size at the start is promised; that of the MLP alone depends on the units of the positions.
SCALED = [name for name in sorted(lff.METHODS) if name != "MLP" and re.search(r"MLP|Fourier|Embed|Uniform|N\(0", name)]


@pytest.mark.parametrize("name", SCALED)
def test_output_starts_at_the_scale_that_was_asked_for(name: str) -> None:
    """The mean over several draws of many hidden units, since one draw of 32 strays by a fifth."""
    coords = lff.METHODS[name].coords or 2
    scaled = any(word in name for word in ("MLP", "Dense", "Scale", "Embed"))  # Eq. 2 fixes the scale of features alone
    options = {"scale": 0.02} if scaled else {}
    options |= {"hidden": 512} if "MLP" in name else {}
    positions = torch.randint(EXTENT, (200, coords)).float()
    draws = [lff.build(name, coords=coords, depth=DEPTH, extent=(EXTENT,) * coords, **options) for _ in range(8)]
    power = torch.stack([encode(positions).detach().square().mean() for encode in draws]).mean()
    assert power.sqrt() == pytest.approx(draws[0].rms, rel=0.15)
    assert not scaled or draws[0].rms == 0.02
