"""The precision contract: phases in float32 or better, whatever the module was cast to and whatever context it runs in."""

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import lff

PHASED = sorted(name for name in lff.METHODS if any(part in name for part in ("Fourier", "Sine", "Uniform", "N(0")))
LIMIT = 2e-2  # of the part of the output that varies with the position
Error = Callable[[Tensor, Tensor], float]


def _wide(name: str, device: str = "cpu") -> tuple[lff.Encoding, Tensor, Tensor]:
    """An encoding, positions up to 1024, and what it should give: itself in float64."""
    coords = lff.METHODS[name].coords or (1 if name == "Sine-1D" else 2)
    encode = lff.build(name, coords=coords, depth=192).to(device)
    positions = torch.randint(1025, (1000, coords)).float().to(device)
    return encode, positions, copy.deepcopy(encode).double()(positions.double()).detach()


@pytest.fixture(params=["high", "medium"])
def rounded_matmul(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("name", PHASED)
def test_error_under_bfloat16_autocast(name: str, relative_error: Error) -> None:
    encode, positions, reference = _wide(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert relative_error(encode(positions), reference) <= LIMIT


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PHASED)
def test_error_after_a_cast(name: str, dtype: torch.dtype, relative_error: Error) -> None:
    encode, positions, reference = _wide(name)
    assert relative_error(encode.to(dtype)(positions), reference) <= LIMIT


@pytest.mark.usefixtures("rounded_matmul")
@pytest.mark.parametrize("name", PHASED)
def test_error_with_rounded_float32_matrix_products(name: str, relative_error: Error) -> None:
    encode, positions, reference = _wide(name)
    assert relative_error(encode(positions), reference) <= LIMIT


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:the fused kernels are not used:UserWarning")  # by the reference, which is in float64
@pytest.mark.usefixtures("rounded_matmul")
@pytest.mark.parametrize("name", PHASED)
def test_errors_on_a_gpu(name: str, relative_error: Error) -> None:
    """TF32 exists there only, and so does autocast's own set of casts."""
    encode, positions, reference = _wide(name, "cuda")
    assert relative_error(encode(positions), reference) <= LIMIT
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert relative_error(encode(positions), reference) <= LIMIT
    assert relative_error(encode.bfloat16()(positions), reference) <= LIMIT


@pytest.mark.parametrize("name", ["Learnable-Fourier+MLP", "Learnable-Fourier+MLP-2/2", "Learnable-Fourier"])
@pytest.mark.parametrize("how", ["autocast", "cast"])
def test_gradients_keep_their_phases_too(name: str, how: str) -> None:
    """The gradient of every weight, and of the positions, against float64 with the same incoming gradient."""
    encode, positions, reference = _wide(name)
    grad = torch.randn_like(reference)

    def gradients(encode: lff.Encoding, dtype: torch.dtype) -> list[Tensor]:
        x = positions.to(dtype).requires_grad_()
        out = encode(x)
        return list(torch.autograd.grad(out, [x, *encode.parameters()], grad.to(out.dtype)))

    expected = gradients(copy.deepcopy(encode).double(), torch.float64)
    if how == "autocast":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            actual = gradients(encode, torch.float32)
    else:
        actual = gradients(encode.bfloat16(), torch.float32)
    for ours, exact in zip(actual, expected, strict=True):
        assert (ours.double() - exact).norm() <= LIMIT * exact.norm()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("learnable", [True, False])
def test_frequencies_stay_float32_when_a_model_is_cast_down(dtype: torch.dtype, learnable: bool) -> None:
    features = lff.FourierFeatures(2, 64, bias=True, learnable=learnable)
    model = nn.ModuleDict({"encode": lff.Modulated(features, 8), "head": nn.Linear(8, 3)})
    before = {name: tensor.clone() for name, tensor in features.state_dict().items()}
    model.to(dtype)
    assert {name for name, tensor in model.state_dict().items() if tensor.dtype == torch.float32} == {
        "encode.features.w_r",
        "encode.features.bias",
    }
    other = lff.FourierFeatures(2, 64, bias=True, learnable=learnable)
    other.load_state_dict(model["encode"].features.state_dict())
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert model["head"](model["encode"](torch.rand(5, 2))).dtype == dtype


def test_frequencies_follow_to_float64_and_back_to_float32_and_to_a_device() -> None:
    features = lff.FourierFeatures(2, 8)
    assert features.double().w_r.dtype == torch.float64
    assert features.half().w_r.dtype == torch.float32
    assert features(torch.zeros(2)).dtype == torch.float16
    assert features.to("meta", torch.bfloat16).w_r.device.type == "meta"
    assert features.w_r.dtype == torch.float32


def test_a_cast_keeps_the_parameter_that_the_optimiser_holds() -> None:
    encode = lff.LearnableFourier(2, 8)
    before = dict(encode.named_parameters())
    encode.bfloat16()
    assert all(before[name] is parameter for name, parameter in encode.named_parameters())


@pytest.mark.parametrize("name", [name for name in PHASED if name != "Sine-1D"])
def test_neighbours_that_bfloat16_cannot_tell_apart_differ(name: str) -> None:
    coords = lff.METHODS[name].coords or 2
    encode = lff.build(name, coords=coords, depth=192).bfloat16()
    one, two, three = encode(torch.tensor([[512.0], [513.0], [514.0]]).expand(3, coords))
    assert torch.tensor(513.0).bfloat16() == torch.tensor(514.0).bfloat16() == 512
    for a, b in ((one, two), (two, three), (one, three)):
        assert (a - b).float().norm() > 0.1 * one.float().norm()


def test_one_dtype_for_layers_that_something_else_has_cast() -> None:
    """FSDP2's mixed precision casts the weights of a layer without telling the module."""
    for encode in (lff.LearnableFourier(2, 8), lff.MLP(2, 8), lff.Dense(lff.FourierFeatures(2, 8), 8)):
        for module in encode.modules():
            if isinstance(module, nn.Linear):
                module.bfloat16()
        encode(torch.rand(5, 2))
