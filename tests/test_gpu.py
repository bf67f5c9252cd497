"""Run by hand on a machine with a GPU: `pytest -m gpu`."""

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import lff
from conftest import small
from lff.adapters.grid import GridPositions

# In float64, which references are in, the kernels do not serve, and that is said.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:the fused kernels are not used:UserWarning")]
LIMIT = 2e-2


@pytest.fixture
def _tf32() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def test_every_method_gives_the_same_on_a_gpu(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    there = copy.deepcopy(encode).cuda()
    torch.testing.assert_close(there(positions.cuda()).cpu(), encode(positions), atol=1e-4, rtol=1e-4)
    if list(encode.parameters()):
        grad = torch.randn(20, encode.depth)
        ours = torch.autograd.grad(encode(positions), list(encode.parameters()), grad)
        theirs = torch.autograd.grad(there(positions.cuda()), list(there.parameters()), grad.cuda())
        torch.testing.assert_close([g.cpu() for g in theirs], list(ours), atol=1e-3, rtol=1e-3)


@pytest.mark.usefixtures("_tf32")
@pytest.mark.parametrize("how", ["float32", "autocast", "cast"])
def test_gradients_keep_their_phases_with_tf32(how: str) -> None:
    encode = lff.LearnableFourier(2, 192).cuda()
    positions, grad = torch.randint(1025, (1000, 2)).float().cuda(), torch.randn(1000, 192).double().cuda()

    def gradients(encode: lff.Encoding, dtype: torch.dtype) -> list[Tensor]:
        x = positions.to(dtype).requires_grad_()
        out = encode(x)
        return list(torch.autograd.grad(out, [x, *encode.parameters()], grad.to(out.dtype)))

    expected = gradients(copy.deepcopy(encode).double(), torch.float64)
    if how == "autocast":
        with torch.autocast("cuda", dtype=torch.bfloat16):
            actual = gradients(encode, torch.float32)
    else:
        actual = gradients(encode.bfloat16() if how == "cast" else encode, torch.float32)
    for ours, exact in zip(actual, expected, strict=True):
        assert (ours.double() - exact).norm() <= LIMIT * exact.norm()


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_tf32")
@pytest.mark.parametrize("name", ["Learnable-Fourier+MLP", "Sine-2D", "MD-Sine"])
def test_compiled_for_a_gpu_it_stays_exact(name: str, relative_error: Callable[[Tensor, Tensor], float]) -> None:
    encode = lff.build(name, coords=2, depth=192).cuda()
    positions = torch.randint(1025, (1000, 2)).float().cuda()
    reference = copy.deepcopy(encode).double()(positions.double()).detach()
    compiled = torch.compile(encode, fullgraph=True)
    assert relative_error(compiled(positions), reference) <= LIMIT
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = compiled(positions)
    assert out.dtype == torch.bfloat16
    assert relative_error(out, reference) <= LIMIT


def test_a_table_on_a_gpu_refuses_what_it_does_not_have() -> None:
    encode = lff.Embed((3, 5), 8).cuda()
    with pytest.raises(ValueError, match="positions must be whole numbers from 0 to"):
        encode(torch.tensor([[3.0, 0.0]]).cuda())
    encode(torch.tensor([[2.0, 4.0]]).cuda())  # and the device is none the worse for it


def test_a_grid_on_a_gpu_follows_its_weights_in_evaluation_and_in_a_graph() -> None:
    position = GridPositions(lff.LearnableFourier(2, 64), (14, 14), prefix=torch.zeros(1, 64)).cuda().eval()
    with torch.inference_mode():
        first = position(14, 14)
        position.encoding.encoder.features.w_r.data.add_(1)  # PyTorch does not count this change
        assert not torch.equal(position(14, 14), first)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = position(14, 14)
        position.encoding.encoder.features.w_r.data.add_(1)
        graph.replay()
        torch.testing.assert_close(out, position(14, 14))


def test_a_forward_can_be_captured_in_a_cuda_graph() -> None:
    encode, positions = lff.LearnableFourier(2, 64).cuda().eval(), torch.rand(100, 2).cuda()
    with torch.no_grad():
        expected = encode(positions)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = encode(positions)
        graph.replay()
    torch.testing.assert_close(out, expected)
