import subprocess
import sys

import pytest
import torch
from algorithm import DEVICE, OBSTACLE, Weights, off, runs_kernels
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import lff.kernels.modulated  # noqa: F401  (registers the operators, also for a test that runs alone)
from lff import kernels

interpreted_or_on_gpu = runs_kernels[1]
pytestmark = pytest.mark.plain


class Encoder(nn.Module):
    """Algorithm 1 on the kernels, as a module that can be compiled and exported."""

    def __init__(self, hidden: int = 5, dtype: torch.dtype = torch.float32, dropout: float = 0.0) -> None:
        super().__init__()
        self.made = Weights(2, 6, hidden, 7, True, True)
        self.weights = nn.ParameterDict({name: nn.Parameter(tensor.detach()) for name, tensor in self.made.tensors.items()})
        self.options = {"dtype": dtype, "dropout": dropout}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.weights
        norms = {"norm_1": (w["g_1"], w["s_1"]), "norm_2": (w["g_2"], w["s_2"])}
        args = (w["w_r"], w["bias"], w["w_1"], w["b_1"], w["w_2"], w["b_2"])
        out = kernels.fourier_mlp(x, *args, **norms, **self.options)
        return out * kernels.fourier_features(x, w["w_r"][:1], dtype=out.dtype).sum(-1, keepdim=True)


#: x, W_r, bias, W_1, b_1, W_2, b_2, and the weights and shifts of the two LayerNorms.
SHAPES = ((9, 2), (3, 2), (3,), (5, 6), (5,), (4, 5), (4,), (6,), (6,), (5,), (5,))


def tensors(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape, device=DEVICE, requires_grad=True) for shape in shapes]


@interpreted_or_on_gpu
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # of copies that the checks make
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_operators_pass_torchs_own_checks(dtype: torch.dtype) -> None:
    x, w_r, bias, w_1, b_1, w_2, b_2, *norms = tensors(*SHAPES)
    torch.library.opcheck(torch.ops.lff.fourier_features, (x, w_r, bias, dtype))
    torch.library.opcheck(torch.ops.lff.fourier_features, (x.detach(), w_r, None, dtype))
    torch.library.opcheck(torch.ops.lff.fourier_features, (x, w_r, None, dtype, 0.5))
    seed = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    torch.library.opcheck(torch.ops.lff.fourier_mlp, (x, w_r, bias, w_1, b_1, w_2, b_2, *norms, seed, 1e-5, 0.2, dtype))
    torch.library.opcheck(torch.ops.lff.fourier_mlp, (x.detach(), w_r, None, w_1, b_1, w_2, b_2, *[None] * 5, 1e-5, 0.0, dtype))
    torch.library.opcheck(torch.ops.lff.fourier_dense, (x, w_r, bias, w_1, b_1, True, 1e-5, dtype))


@interpreted_or_on_gpu
@pytest.mark.parametrize("hidden", [5, 130])
def test_compiled_without_a_break_it_gives_the_same_values_and_gradients(hidden: int) -> None:
    encode, x = Encoder(hidden), torch.randn(9, 2, device=DEVICE, requires_grad=True)
    compiled = torch.compile(encode, fullgraph=True, backend="aot_eager")
    inputs = [x, *encode.parameters()]
    grad = torch.randn(9, 7, device=DEVICE)
    torch.testing.assert_close(compiled(x), encode(x))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), inputs, grad), torch.autograd.grad(encode(x), inputs, grad))
    torch.testing.assert_close(compiled(x.detach()[:4]), encode(x.detach()[:4]))  # another number of positions


@interpreted_or_on_gpu
def test_exported_it_gives_the_same_values_for_any_number_of_positions() -> None:
    encode, x = Encoder().eval(), torch.randn(9, 2, device=DEVICE)
    exported = torch.export.export(encode, (x,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=1000)},))
    assert "lff.fourier_mlp" in exported.graph_module.code
    more = torch.randn(21, 2, device=DEVICE)
    torch.testing.assert_close(exported.module()(more), encode(more))


@interpreted_or_on_gpu
@pytest.mark.parametrize("hidden", [5, 130])
def test_fake_tensors_pass_through_both_ways(hidden: int) -> None:
    with FakeTensorMode():
        encode, x = Encoder(hidden, torch.bfloat16), torch.randn(4, 9, 2, device=DEVICE, requires_grad=True)
        out = encode(x)
        assert (out.shape, out.dtype) == ((4, 9, 7), torch.bfloat16)
        out.sum().backward()
        assert x.grad.shape == x.shape
        assert all(weight.grad.shape == weight.shape for weight in encode.parameters())


@interpreted_or_on_gpu
@pytest.mark.parametrize("hidden", [5, 130])
def test_autocast_changes_nothing_but_what_the_caller_asks_for(hidden: int) -> None:
    encode, x = Encoder(hidden), torch.randint(1024, (9, 2), device=DEVICE).float()
    plain = encode(x)
    with torch.autocast(DEVICE, torch.bfloat16):
        narrow = kernels.fourier_features(x, encode.weights["w_r"])
        assert narrow.dtype == torch.float32
        assert off(encode(x), plain.double()) < (1e-6 if hidden == 5 else 2e-2)  # a wide second layer is torch's own


@interpreted_or_on_gpu
@pytest.mark.parametrize("hidden", [5, 130])
def test_a_second_derivative_says_what_to_do(hidden: int) -> None:
    encode, x = Encoder(hidden), torch.randn(9, 2, device=DEVICE, requires_grad=True)
    (grad,) = torch.autograd.grad(encode(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r'differentiable once; for a second derivative use impl="torch"'):
        grad.sum().backward()


def test_an_obstacle_is_named() -> None:
    if OBSTACLE is not None:
        with pytest.raises(ValueError, match=r'; use impl="torch"'):
            kernels.fourier_features(torch.zeros(3, 2), torch.zeros(4, 2))
        return
    x = torch.zeros(3, 2, device=DEVICE)
    assert kernels.obstacle(x, x.int(), x.bfloat16(), None) is None
    assert kernels.obstacle(x.double()) == "the kernels compute in float32, got torch.float64"
    assert kernels.obstacle(x, dtype=torch.float64) == "the kernels give float32, bfloat16 or float16, not torch.float64"
    assert kernels.obstacle(x.to("meta")) == "Triton needs tensors on a CUDA device, got meta"
    with pytest.raises(ValueError, match=r'got torch\.float64; use impl="torch"'):
        kernels.fourier_features(x.double(), x)
    with pytest.raises(ValueError, match="norm_1 and norm_2 must be given together"):
        Weights(2, 6, 5, 7).kernel(x, norm_1=(torch.ones(6), torch.zeros(6)))


def test_importing_the_kernels_does_not_import_triton() -> None:
    subprocess.run([sys.executable, "-c", "import sys, lff.kernels; assert 'triton' not in sys.modules"], check=True)
