"""The choice of an implementation where the kernels do not serve: who is told, and that torch computes all the same."""

import copy
import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import lff
from conftest import DEPTH, EXTENT, small
from lff.encodings import implementation
from lff.kernels import serving

pytestmark = pytest.mark.skipif(serving.INTERPRETED, reason="Triton's interpreter lets the kernels serve on a CPU")
TRITON = pytest.mark.skipif(not serving.INSTALLED, reason="Triton is not installed")


@pytest.fixture(autouse=True)
def _nothing_said() -> Iterator[None]:
    implementation.SAID.clear()
    yield
    implementation.SAID.clear()


def with_impl(method: str, impl: str) -> lff.Encoding:
    coords = lff.METHODS[method].coords or 2
    return lff.build(method, coords=coords, depth=DEPTH, extent=(EXTENT,) * coords, impl=impl)


def test_every_method_takes_every_implementation_and_gives_the_same(method: str) -> None:
    encode, positions = small(method)
    encode.eval()
    for impl in implementation.IMPLS:
        other = with_impl(method, impl)
        assert {module.impl for module in other.modules() if isinstance(module, lff.Encoding)} == {impl}
        other.load_state_dict(encode.state_dict())
        with warnings.catch_warnings():
            warnings.simplefilter("error" if impl != "triton" else "ignore")  # on a CPU nobody is told who did not ask
            assert torch.equal(other.eval()(positions), encode(positions))


def test_whoever_asks_for_the_kernels_is_told_once_why_there_are_none() -> None:
    one, other = lff.LearnableFourier(2, 8, impl="triton"), lff.FourierFeatures(2, 8, impl="triton")
    reason = "needs tensors on a CUDA device, got cpu" if serving.INSTALLED else "Triton is not installed"
    message = rf'the fused kernels are not used \(.*{reason}\); plain torch computes the same\. impl="torch" asks for that'
    with pytest.warns(UserWarning, match=message):
        one(torch.ones(2, 2))
    for encode in (one, other, lff.LearnableFourier(4, 8, groups=2, impl="triton")):
        encode(torch.ones(2, encode.coords))  # a warning would be an error


def test_another_reason_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = lff.Sine(2, 8, impl="triton")
    monkeypatch.setattr(serving, "INSTALLED", True)
    with pytest.warns(UserWarning, match="CUDA device"):
        encode(torch.ones(2, 2))
    monkeypatch.setattr(serving, "INSTALLED", False)
    with pytest.warns(UserWarning, match="Triton is not installed"):
        encode(torch.ones(2, 2))


def test_on_a_gpu_auto_tells_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "INSTALLED", False)
    with FakeTensorMode(), torch.device("cuda"):
        encode, positions = lff.LearnableFourier(2, 8, impl="torch"), torch.ones(3, 2)
        encode(positions)
        encode.impl = "auto"
        with pytest.warns(UserWarning, match="Triton is not installed"):
            encode(positions)
        assert encode(positions).shape == (3, 8)


def test_on_the_meta_device_there_is_nothing_to_tell() -> None:
    with torch.device("meta"):
        for encode in (lff.LearnableFourier(2, 8, impl="triton"), lff.Sine(2, 8, impl="triton")):
            assert encode(torch.ones(3, 2)).is_meta


@pytest.mark.plain
@pytest.mark.parametrize(
    "make",
    [
        lambda impl: lff.FourierFeatures(2, 8, impl=impl),
        lambda impl: lff.LearnableFourier(2, 8, impl=impl),
        lambda impl: lff.Modulated(lff.Sine(2, 8), 8, impl=impl),
        lambda impl: lff.Sine(2, 8, impl=impl),
        lambda impl: lff.MultiDimSine(2, 8, impl=impl),
        lambda impl: lff.build("Embed-2D", coords=2, depth=8, extent=(3, 3), impl=impl),
    ],
)
def test_an_unknown_implementation_is_refused(make: Callable[[str], lff.Encoding]) -> None:
    for impl in implementation.IMPLS:
        assert make(impl).impl == impl
    for impl in ("cuda", None, 1):
        with pytest.raises(ValueError, match=rf"impl must be one of 'auto', 'torch', 'triton', got {impl!r}"):
            make(impl)
    encode = make("auto")
    with pytest.raises(ValueError, match="impl must be one of"):
        encode.impl = "cuda"


def test_features_that_are_given_keep_their_own_until_all_are_set() -> None:
    encode = lff.Modulated(lff.FourierFeatures(2, 8, impl="triton"), 8, impl="torch")
    assert (encode.impl, encode.features.impl) == ("torch", "triton")
    grouped = lff.Grouped(encode, 2)
    assert grouped.impl == "auto"
    grouped.impl = "auto"
    assert encode.impl == encode.features.impl == "auto"


def test_it_is_not_saved(tmp_path: Path) -> None:
    encode = lff.Grouped(lff.Modulated(lff.FourierFeatures(2, 8, impl="torch"), 8, impl="torch"), 2)
    encode.save_pretrained(tmp_path)
    assert "impl" not in (tmp_path / "config.json").read_text()
    assert json.loads((tmp_path / "config.json").read_text())["class"] == "Grouped"
    back = lff.Encoding.from_pretrained(tmp_path)
    assert back.impl == back.encoder.impl == back.encoder.features.impl == "auto"
    assert set(encode.state_dict()) == set(lff.LearnableFourier(4, 16, features=8, groups=2).state_dict())


def test_what_was_pickled_before_there_was_a_choice_chooses_by_itself() -> None:
    encode = lff.LearnableFourier(2, 8, impl="torch")
    for module in encode.modules():
        module.__dict__.pop("_impl", None)
    old = pickle.loads(pickle.dumps(encode))
    assert old.impl == old.encoder.impl == "auto"
    assert torch.equal(old(torch.ones(3, 2)), encode(torch.ones(3, 2)))
    assert copy.deepcopy(lff.Sine(2, 8, impl="torch")).impl == "torch"


@pytest.mark.compile
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", ["Learnable-Fourier+MLP", "Learnable-Fourier", "Sine-2D"])
def test_compiled_it_falls_back_without_a_break_and_tells(method: str) -> None:
    torch._dynamo.reset()
    encode, positions = small(method)
    encode.impl = "triton"
    with pytest.warns(UserWarning, match="the fused kernels are not used"):
        out = torch.compile(encode, fullgraph=True, backend="aot_eager")(positions)
    torch.testing.assert_close(out, encode(positions))


@TRITON
def test_a_graph_for_a_gpu_is_made_with_the_kernels() -> None:
    """No GPU is needed to see which operator is recorded."""
    with FakeTensorMode(), torch.device("cuda"):
        out = lff.LearnableFourier(2, 8)(torch.ones(3, 2))
    made = out.grad_fn  # of `out`, which must live: what made a tensor in Python is gone with it
    while "View" in made.name():
        ((made, _),) = made.next_functions
    assert "fourier_mlp" in made.name()
