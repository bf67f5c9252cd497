"""What is remembered while a model evaluates: encoded once, and again as soon as anything changes that decides it."""

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from hosts import HOSTS
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import lff
from lff.adapters.grid import GridPositions
from lff.adapters.sequence import SequencePositions
from lff.adapters.shared import MOST

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]
SIZE = (9, 8)


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Size]]:
    """The shapes of positions that have been encoded. Counted in the class: a hook would have to be called every time."""
    made: list[torch.Size] = []
    for cls in (lff.Grouped, lff.Sine):

        def encode(self: lff.Encoding, positions: Tensor, original: Callable[..., Tensor] = cls.encode) -> Tensor:
            made.append(positions.shape)
            return original(self, positions)

        monkeypatch.setattr(cls, "encode", encode)
    return made


def positions(encoding: lff.Encoding | None = None, **options) -> GridPositions:
    if encoding is None:
        encoding = lff.LearnableFourier(2, 32, features=8, hidden=8, layer_norm=True, dropout=0.3)
    return GridPositions(encoding, SIZE, prefix=torch.randn(2, 32), **options).eval()


def true(grid: GridPositions, *size: int) -> Tensor:
    """What a copy gives that remembers nothing."""
    return copy.deepcopy(grid)(*size)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "name", ["ViT", "DeiT", "DINOv2", "CLIP", "SigLIP", "DETR", "Deformable DETR", "RT-DETR", "Reformer", "BERT", "timm ViT"]
)
def test_many_batches_are_encoded_once(name: str, context: Callable[[], AbstractContextManager], calls: list) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    encoding = lff.LearnableFourier(case.coords, case.own(model).depth, features=4, hidden=2)
    lff.swap(model, encoding, **dict(case.options))
    calls.clear()
    outputs = []
    for _ in range(3):
        with context():
            outputs.append(case.run(model, case.size))
    # Deformable DETR has three feature maps. RT-DETR has sizes of its own.
    assert len(calls) == (3 if name == "Deformable DETR" else 1)
    assert torch.equal(outputs[0], outputs[1])
    with torch.enable_grad():
        torch.testing.assert_close(outputs[2], case.run(model, case.size), atol=1e-5, rtol=1e-5)


def _step(grid: GridPositions) -> None:
    optimiser = torch.optim.AdamW(grid.parameters(), lr=0.1)
    with torch.enable_grad():
        copy.deepcopy(grid)(*SIZE).sum().backward()
    for parameter in grid.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser.step()


def _load(grid: GridPositions) -> None:
    grid.load_state_dict({key: value + 1 for key, value in grid.state_dict().items()})


def _assign(grid: GridPositions) -> None:
    grid.load_state_dict({key: value + 1 for key, value in grid.state_dict().items()}, assign=True)


def _set_data(grid: GridPositions) -> None:
    for parameter in grid.parameters():
        parameter.data = parameter.data + 1


def _behind_its_back(grid: GridPositions) -> None:
    grid.encoding.encoder.dense_1.weight.detach().numpy()[:] += 1


def _replace_layer(grid: GridPositions) -> None:
    grid.encoding.encoder.dense_2 = nn.Linear(8, 32)


def _replace_encoding(grid: GridPositions) -> None:
    grid.encoding = lff.LearnableFourier(2, 32, features=8, hidden=8, layer_norm=True).eval()


def _hook(grid: GridPositions) -> None:
    grid.encoding.encoder.dense_2.register_forward_hook(lambda module, inputs, out: out + 1)


CHANGES: dict[str, Callable[[GridPositions], object]] = {
    "a step of an optimiser": _step,
    "load_state_dict": _load,
    "load_state_dict, assigned": _assign,
    "one weight in place": lambda grid: grid.encoding.encoder.features.w_r.add_(1),
    "one weight through .data": lambda grid: grid.encoding.encoder.features.w_r.data.add_(1),
    "the token in front through .data": lambda grid: grid.prefix.data.add_(1),
    "other .data": _set_data,
    "memory that is shared": _behind_its_back,
    "another layer": _replace_layer,
    "another encoding": _replace_encoding,
    "a hook": _hook,
    "a cast": lambda grid: grid.bfloat16(),
    "a cast of the encoding": lambda grid: grid.encoding.double(),
    "an attribute of a layer": lambda grid: setattr(grid.encoding.encoder.norm_2, "eps", 1.0),
    "another trained size": lambda grid: setattr(grid, "size", (3, 3)),
    "how another size is asked for": lambda grid: (setattr(grid, "size", (3, 3)), setattr(grid, "unseen", "interpolate")),
    "normalised positions": lambda grid: setattr(grid, "normalize", True),
    "no token in front": lambda grid: setattr(grid, "prefix", None),
}


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_decides_is_noticed(change: str, inference: bool, calls: list) -> None:
    grid = positions()
    with torch.inference_mode() if inference else torch.no_grad():
        before = grid(*SIZE)
        assert grid(*SIZE) is before
        assert len(calls) == 1
    with torch.no_grad():
        CHANGES[change](grid)
    with torch.inference_mode() if inference else torch.no_grad():
        after = grid(*SIZE)
    assert torch.equal(after, true(grid, *SIZE))
    assert after.shape != before.shape or not torch.equal(after, before)


@pytest.mark.parametrize(
    "surroundings",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.autocast("cpu", dtype=torch.float16),
        lambda: precision("medium"),
    ],
)
def test_autocast_and_rounded_products_are_noticed(surroundings: Callable[[], AbstractContextManager], calls: list) -> None:
    torch.set_float32_matmul_precision("highest")
    grid = positions(class_token="zero")
    with torch.no_grad():
        plain = grid(*SIZE)
        for _ in range(2):
            with surroundings():
                assert grid(*SIZE).dtype == copy.deepcopy(grid)(*SIZE).dtype
                assert grid(*SIZE) is not plain
            assert grid(*SIZE) is plain
    assert len(calls) == 1 + 1 + 2  # once each, and the copies


def test_one_autocast_is_told_from_another() -> None:
    grid = positions(class_token="zero")
    with torch.no_grad():
        for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
            with torch.autocast("cpu", dtype=dtype):
                assert grid(*SIZE).dtype == dtype


class precision:
    def __init__(self, value: str) -> None:
        self.value, self.before = value, torch.get_float32_matmul_precision()

    def __enter__(self) -> None:
        torch.set_float32_matmul_precision(self.value)

    def __exit__(self, *error: object) -> None:
        torch.set_float32_matmul_precision(self.before)


def test_training_gradients_and_dropout_that_acts_forget() -> None:
    grid = positions()
    with torch.no_grad():
        first = grid(*SIZE)
    assert grid(*SIZE).requires_grad  # gradients are wanted
    with torch.no_grad():
        second = grid(*SIZE)
        assert second is not first
        grid.encoding.encoder.dropout.train()  # Monte Carlo dropout in a model that evaluates
        assert not torch.equal(grid(*SIZE), grid(*SIZE))
        grid.train()
        assert not torch.equal(grid(*SIZE), grid(*SIZE))
        assert "_kept" not in vars(grid)
        assert torch.equal(grid.eval()(*SIZE), second)


def test_a_result_that_was_written_to_is_not_given_again() -> None:
    grid = positions()
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            expected = grid(*SIZE).clone()
            grid(*SIZE).add_(1)
            assert torch.equal(grid(*SIZE), expected)
            grid(*SIZE)[0, 3:5].mul_(2)
            assert torch.equal(grid(*SIZE), expected)


def test_what_was_remembered_in_inference_mode_serves_outside() -> None:
    grid = positions()
    with torch.inference_mode():
        grid(*SIZE)
    with torch.no_grad():
        encoded = grid(*SIZE)
    weight = torch.ones(32, requires_grad=True)
    (encoded * weight).sum().backward()  # an inference tensor could not be saved for this
    assert torch.equal(weight.grad, encoded.sum((0, 1)))


def test_weights_made_in_inference_mode_serve_too(calls: list) -> None:
    with torch.inference_mode():
        grid = positions()
        first = grid(*SIZE)
        assert torch.equal(grid(*SIZE), first)
        assert len(calls) == 1
        grid.encoding.encoder.features.w_r.add_(1)
        assert not torch.equal(grid(*SIZE), first)


def test_several_sizes_are_kept_and_no_more(calls: list) -> None:
    grid = positions()
    sizes = [(6 + n, 7) for n in range(MOST + 2)]
    with torch.no_grad():
        for _ in range(3):
            for size in sizes[:MOST]:
                assert grid(*size).shape[1] == 2 + size[0] * size[1]
        assert len(calls) == MOST
        for size in sizes:
            grid(*size)
        assert len(vars(grid)["_kept"]) == MOST


def test_copies_pickles_and_weights_are_without_it() -> None:
    grid = positions()
    bare, keys = len(pickle.dumps(grid)), list(grid.state_dict())
    with torch.no_grad():
        grid(*SIZE)
    assert vars(grid)["_kept"]
    assert list(grid.state_dict()) == keys
    assert len(pickle.dumps(grid)) < bare + 200
    torch.save(grid, saved := io.BytesIO())
    saved.seek(0)
    for clone in (copy.deepcopy(grid), copy.copy(vars(grid)["_kept"]), pickle.loads(pickle.dumps(grid))):
        assert not (clone if isinstance(clone, dict) else vars(clone)["_kept"])
    assert torch.equal(torch.load(saved, weights_only=False)(*SIZE), grid(*SIZE))


def test_a_table_as_large_as_its_output_is_looked_up() -> None:
    grid = positions(lff.Embed(SIZE, 32, join="cell"))
    with torch.no_grad():
        grid(*SIZE)
    assert "_kept" not in vars(grid)


class Noise(lff.Sine):
    """An encoding of a user's own, that depends on something unknown here."""

    def encode(self, positions: Tensor) -> Tensor:
        return torch.randn(*positions.shape[:-1], self.depth)


def test_an_encoding_that_is_not_known_is_called_every_time() -> None:
    grid = positions(Noise(2, 32))
    with torch.no_grad():
        assert not torch.equal(grid(*SIZE), grid(*SIZE))
    patched = positions(lff.Sine(2, 32))
    patched.encoding.encode = lambda positions: torch.randn(*positions.shape[:-1], 32)
    with torch.no_grad():
        assert not torch.equal(patched(*SIZE), patched(*SIZE))


class Quantised(nn.Parameter):
    """A weight that is not what it holds."""


def test_weights_of_another_kind_are_not_compared() -> None:
    grid = positions()
    grid.encoding.encoder.dense_1.weight = Quantised(grid.encoding.encoder.dense_1.weight.detach())
    with torch.no_grad():
        grid(*SIZE)
    assert "_kept" not in vars(grid)


class Recorded(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("how", ["fake", "dispatch", "device", "dual", "vmap"])
def test_nothing_is_kept_where_it_would_be_recorded_or_transformed(how: str, calls: list) -> None:
    grid = positions()
    inside: dict[str, Callable[[], AbstractContextManager]] = {
        "fake": lambda: FakeTensorMode(allow_non_fake_inputs=True),
        "dispatch": Recorded,
        "device": lambda: torch.device("cpu"),
        "dual": torch.autograd.forward_ad.dual_level,
        "vmap": nullcontext,
    }
    with torch.no_grad():
        grid(*SIZE)
        for _ in range(2):
            with inside[how]():
                if how == "vmap":
                    torch.func.vmap(lambda x: x + grid(*SIZE))(torch.zeros(3, 1))
                else:
                    grid(*SIZE)
    assert len(calls) == 3
    assert "_kept" not in vars(grid)


def test_operations_are_counted_in_every_batch() -> None:
    model = lff.swap(HOSTS["ViT"].make().eval(), lff.LearnableFourier(2, 32, features=4, hidden=2))
    counts = []
    for _ in range(2):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, 3, 32, 32))
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1]


@pytest.mark.compile
def test_a_compiled_or_exported_graph_sees_new_weights() -> None:
    torch._dynamo.reset()
    grid = positions(lff.LearnableFourier(2, 32, features=8, hidden=8))
    with torch.no_grad():
        grid(*SIZE)
        compiled = torch.compile(grid, fullgraph=True, backend="aot_eager")
        for _ in range(2):
            torch.testing.assert_close(compiled(*SIZE), grid(*SIZE))
            grid.encoding.encoder.features.w_r.data.add_(1)

    class Added(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.grid = grid

        def forward(self, x: Tensor) -> Tensor:
            return x + self.grid(*SIZE)

    with torch.no_grad():
        program = torch.export.export(Added().eval(), (torch.zeros(3, 1, 1),))
    assert "cos" in program.graph_module.code  # not a constant


def test_other_numbers_of_tokens_are_encoded_anew(calls: list) -> None:
    sequence = SequencePositions(lff.Sine(1, 8), None).eval()
    row, other = torch.arange(5)[None].expand(3, -1), torch.arange(5, 10)[None].expand(3, -1)
    with torch.no_grad():
        first, again, moved = sequence(row), sequence(row.clone()[:1].expand(3, -1)), sequence(other)
        own = sequence(row.clone())
    assert len(calls) == 3
    assert torch.equal(first, again)
    assert torch.equal(first, own)
    assert torch.equal(moved, copy.deepcopy(sequence)(other))
