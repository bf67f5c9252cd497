"""torch.compile, torch.export and ONNX: a whole graph, for any number of positions."""

import io

import numpy as np
import onnxruntime
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import lff
from conftest import small

pytestmark = [pytest.mark.compile, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()


def test_compiles_to_one_graph_that_serves_every_size(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(encode, fullgraph=True, backend=counter)
    for n in (20, 7, 11, 13, 17, 5):
        torch.testing.assert_close(compiled(positions[:n]), encode(positions[:n]))
    assert counter.frame_count <= 2  # one for the first size, one for all others


@pytest.mark.parametrize("name", ["Learnable-Fourier+MLP-2/2", "Sine-4D", "Embed-4D"])
def test_inductor_gives_the_same_outputs_and_gradients(name: str) -> None:
    encode, positions = small(name)
    compiled, grad = torch.compile(encode, fullgraph=True), torch.randn(20, encode.depth)
    expected = encode(positions)
    torch.testing.assert_close(compiled(positions), expected)
    weights = list(encode.parameters())
    if weights:
        torch.testing.assert_close(
            torch.autograd.grad(compiled(positions), weights, grad),
            torch.autograd.grad(expected, weights, grad),
            rtol=1e-4,
            atol=1e-5,
        )


def test_compiled_it_keeps_exact_phases_under_autocast_and_after_a_cast() -> None:
    encode = lff.LearnableFourier(2, 64)
    positions = torch.tensor([[512.0, 0.0], [513.0, 0.0]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        one, other = torch.compile(encode, fullgraph=True)(positions)
        assert one.dtype == torch.bfloat16
    assert (one - other).float().norm() > 0.3 * one.float().norm()
    one, other = torch.compile(encode.bfloat16(), fullgraph=True)(positions)
    assert one.dtype == torch.bfloat16
    assert (one - other).float().norm() > 0.3 * one.float().norm()


@pytest.mark.parametrize("join", ["concat", "sum", "cell"])
def test_a_compiled_table_fails_an_assertion_outside_of_its_extent(join: str) -> None:
    encode = torch.compile(lff.Embed((3, 5), 8, join=join), fullgraph=True, backend="aot_eager")
    encode(torch.tensor([[2.0, 4.0]]))
    with pytest.raises(RuntimeError, match="a value is outside of what is allowed"):
        encode(torch.tensor([[3.0, 0.0]]))


def test_exports_with_a_dynamic_batch(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    program = torch.export.export(encode, (positions,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=4096)},))
    torch.export.save(program, file := io.BytesIO())
    file.seek(0)
    loaded = torch.export.load(file).module()
    for n in (3, 20):
        torch.testing.assert_close(loaded(positions[:n]), encode(positions[:n]))


def test_onnxruntime_agrees_at_a_size_that_was_not_exported(method: str, tmp_path) -> None:
    encode, positions = small(method)
    encode.eval()
    torch.onnx.export(
        encode,
        (positions,),
        path := tmp_path / "encoding.onnx",
        dynamo=True,
        dynamic_shapes=({0: torch.export.Dim("n", min=2, max=4096)},),
        input_names=["positions"],
        verbose=False,
    )
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in (7, 20):
        (out,) = session.run(None, {"positions": positions[:n].numpy()})
        np.testing.assert_allclose(out, encode(positions[:n]).detach().numpy(), atol=1e-5, rtol=1e-5)
