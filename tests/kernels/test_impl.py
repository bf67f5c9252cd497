"""The encodings on the kernels: what they give is what torch gives, and where a kernel would not do, it is not called."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from algorithm import DEVICE, off, runs_kernels
from torch import Tensor, distributed, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils import parametrizations
from torch.utils._python_dispatch import TorchDispatchMode

import lff
from conftest import DEPTH, small
from lff.encodings import implementation

pytestmark = runs_kernels


class Operators(TorchDispatchMode):
    """Names of ours that are called inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        if name.startswith("lff."):
            self.names.add(name.split(".")[1])
        return func(*args, **kwargs or {})


def used(call: Callable[[], object]) -> set[str]:
    with Operators() as operators:
        call()
    return operators.names


def made(method: str, impl: str = "triton", **options) -> tuple[lff.Encoding, Tensor]:
    """As `conftest.small`, on the device of these tests."""
    encode, positions = small(method)
    if options:
        encode = lff.build(method, coords=encode.coords, depth=DEPTH, **options)
    encode.impl = impl
    return encode.to(DEVICE), positions.to(DEVICE)


def expected(method: str) -> set[str]:
    """The operator that a method is to be computed by."""
    if "Embed" in method or method in ("none", "MLP"):
        return set()
    whole = "MLP" in method and "Sine" not in method
    return {"fourier_mlp" if whole else "fourier_features"}


def assert_near(ours: Tensor, theirs: Tensor, bar: float = 1e-5) -> None:
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert off(ours, theirs.double()) < bar


def test_every_method_gives_what_torch_gives_and_the_same_gradients(method: str) -> None:
    encode, positions = made(method)
    x = positions if "Embed" in method or method in ("none", "Sine-1D") else positions.requires_grad_()
    assert used(lambda: encode(x)) == expected(method)
    other = copy.deepcopy(encode)
    other.impl = "torch"
    assert used(lambda: other(x)) == set()
    ours, theirs = encode(x), other(x)
    assert_near(ours, theirs)
    if ours.requires_grad:
        grad, also = torch.randn_like(ours), [x] if x.requires_grad else []
        mine = torch.autograd.grad(ours, [*encode.parameters(), *also], grad)
        other_grads = torch.autograd.grad(theirs, [*other.parameters(), *also], grad)
        for a, b in zip(mine, other_grads, strict=True):
            assert_near(a, b)


def test_auto_takes_the_kernel_and_torch_never_does() -> None:
    for impl, names in (("auto", {"fourier_mlp"}), ("triton", {"fourier_mlp"}), ("torch", set())):
        encode = lff.LearnableFourier(2, 8, impl=impl).to(DEVICE)
        assert used(lambda encode=encode: encode(torch.ones(3, 2, device=DEVICE))) == names
    fixed = lff.Modulated(lff.FourierFeatures(2, 8, impl="torch"), 8).to(DEVICE)
    assert used(lambda: fixed(torch.ones(3, 2, device=DEVICE))) == set()  # its features are not to be computed by a kernel


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("hidden", [16, 130])
def test_norms_biases_and_wide_layers_are_the_same(layer_norm: bool, bias: bool, hidden: int) -> None:
    encode = lff.Modulated(lff.FourierFeatures(2, 12, bias=bias), 10, hidden=hidden, layer_norm=layer_norm, impl="triton")
    encode.to(DEVICE)
    for parameter in encode.parameters():  # away from 0 and 1, where a missing one would not show
        nn.init.normal_(parameter, 0.3 if parameter.ndim == 1 else 0.0, 0.7)
    for norm in (encode.norm_1, encode.norm_2) if layer_norm else ():
        norm.eps = 1e-2
    x = torch.randn(3, 7, 2, device=DEVICE)
    ours = encode(x)
    encode.impl = "torch"
    assert_near(ours, encode(x))


@pytest.mark.parametrize("method", ["Learnable-Fourier+MLP-2/2", "Learnable-Fourier", "Sine-2D", "MD-Sine", "Sine-2D+MLP"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("how", ["autocast", "cast", "layers", "both"])
def test_outputs_have_the_dtype_and_the_precision_that_they_have_with_torch(
    method: str, dtype: torch.dtype, how: str, relative_error
) -> None:
    encode, _ = made(method, "torch")
    x = torch.randint(1024, (60, encode.coords), device=DEVICE)
    true = copy.deepcopy(encode).double()(x).detach()
    if how in ("cast", "both"):
        encode.to(dtype)
    if how == "layers":  # as FSDP2's mixed precision does it
        for layer in encode.modules():
            if isinstance(layer, nn.Linear):
                layer.to(dtype)
    other = torch.float16 if dtype == torch.bfloat16 else torch.bfloat16

    def run(impl: str) -> Tensor:
        encode.impl = impl
        with torch.autocast(DEVICE, dtype=other if how == "both" else dtype, enabled=how in ("autocast", "both")):
            return encode(x)

    ours, theirs = run("auto"), run("torch")
    assert ours.dtype == theirs.dtype
    assert relative_error(ours, true) < 1.5 * relative_error(theirs, true) + 1e-5
    if ours.requires_grad:
        grads, incoming = [], torch.randn_like(true, dtype=torch.float32)
        for out in (ours, theirs):
            encode.zero_grad()
            (out.float() * incoming).sum().backward()
            grads.append({name: p.grad.clone() for name, p in encode.named_parameters()})
        for name, grad in grads[1].items():
            assert grads[0][name].dtype == grad.dtype, name
            assert off(grads[0][name], grad.double()) < 0.1, name


def test_float64_is_computed_by_torch_and_says_so() -> None:
    encode, positions = made("Learnable-Fourier+MLP")
    implementation.SAID.clear()
    with pytest.warns(UserWarning, match="the kernels compute in float32, got torch.float64"):
        assert encode.double()(positions).dtype == torch.float64
    assert encode.float()(positions.double()).dtype == torch.float32  # once


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", ["Learnable-Fourier+MLP-2/2", "Learnable-Fourier", "Sine-2D"])
@pytest.mark.parametrize("impl", ["auto", "triton"])
def test_compiled_to_one_graph_it_is_the_same(method: str, impl: str) -> None:
    torch._dynamo.reset()
    encode, positions = made(method, impl)
    compiled = torch.compile(encode, fullgraph=True, backend="aot_eager")
    x = positions.requires_grad_()
    inputs = [x, *encode.parameters()]
    for n in (20, 7):
        ours, theirs = compiled(x[:n]), encode(x[:n])
        assert_near(ours, theirs)
        incoming = torch.randn_like(ours)  # the sum of squares of sines and cosines has no gradient
        for a, b in zip(torch.autograd.grad(ours, inputs, incoming), torch.autograd.grad(theirs, inputs, incoming), strict=True):
            assert_near(a, b)


@pytest.mark.filterwarnings("default")
def test_compiled_first_thing_in_a_transform_it_is_left_to_torch() -> None:
    torch._dynamo.reset()
    encode, positions = made("Learnable-Fourier+MLP", "auto")
    mapped = torch.func.vmap(lambda x: encode(x))  # vmap names what it maps, and until torch 2.12 no graph holds a module's name
    torch.testing.assert_close(torch.compile(mapped, fullgraph=True, backend="aot_eager")(positions), encode(positions))


@pytest.mark.filterwarnings("default")
def test_exported_it_holds_the_kernel_only_if_that_is_asked_for() -> None:
    for impl, there in (("auto", False), ("triton", True)):
        encode, positions = made("Learnable-Fourier+MLP", impl)
        encode.eval()
        program = torch.export.export(encode, (positions,), dynamic_shapes=({0: torch.export.Dim("n", min=2, max=99)},))
        assert ("lff.fourier_mlp" in program.graph_module.code) == there
        torch.testing.assert_close(program.module()(positions[:7]), encode(positions[:7]))


def test_under_the_transforms_of_torch_func_torch_computes() -> None:
    encode, positions = made("Learnable-Fourier+MLP", "auto")
    weights = dict(encode.named_parameters())

    def loss(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(encode, weights, (x,)).square().sum()

    direct = torch.autograd.grad(encode(positions).square().sum(), list(weights.values()))
    assert used(lambda: torch.func.grad(loss)(weights, positions)) == set()
    for ours, theirs in zip(torch.func.grad(loss)(weights, positions).values(), direct, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, positions)
    for ours, theirs in zip(each.values(), direct, strict=True):
        torch.testing.assert_close(ours.sum(0), theirs, rtol=1e-4, atol=1e-4)
    _, tangent = torch.func.jvp(encode, (positions,), (torch.ones_like(positions),))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(positions, torch.ones_like(positions))
        other = torch.autograd.forward_ad.unpack_dual(encode(dual)).tangent
    torch.testing.assert_close(other, tangent)
    assert torch.func.jacrev(encode)(positions[0]).shape == (DEPTH, 2)
    assert torch.func.hessian(lambda x: encode(x).sum())(positions[0]).isfinite().all()


def test_functional_call_takes_the_kernel_with_the_weights_that_it_is_given() -> None:
    encode, positions = made("Learnable-Fourier+MLP")
    weights = {name: 2 * parameter.detach() for name, parameter in encode.named_parameters()}
    ours = torch.func.functional_call(encode, weights, (positions,))
    encode.load_state_dict(weights, strict=False)
    torch.testing.assert_close(ours, encode(positions))


def test_a_second_derivative_needs_torch_and_the_kernel_says_so() -> None:
    encode, positions = made("Learnable-Fourier+MLP", "auto")
    x = positions.requires_grad_()
    (grad,) = torch.autograd.grad(encode(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r'use impl="torch"'):
        grad.sum().backward()
    encode.impl = "torch"
    (grad,) = torch.autograd.grad(encode(x).sum(), x, create_graph=True)
    grad.sum().backward()


class LowRank(nn.Linear):
    """What adapters such as LoRA put in place of a layer."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 1


class Shifted(lff.FourierFeatures):
    """A user's own features."""

    def encode(self, positions: Tensor) -> Tensor:
        return super().encode(positions + 1)


def _replace(encode: lff.Modulated, name: str) -> None:
    if name == "features":
        encode.features = Shifted(2, 8).to(DEVICE)
    elif "norm" in name:
        setattr(encode, name, nn.RMSNorm(encode.get_submodule(name).normalized_shape).to(DEVICE))
    elif name == "dropout":
        encode.dropout = nn.AlphaDropout(0.3)
    else:
        layer = encode.get_submodule(name)
        setattr(encode, name, LowRank(layer.in_features, layer.out_features).to(DEVICE))


def _double_forward(layer: nn.Module) -> None:
    """As libraries do it that move weights to a device and back around a call."""
    forward = layer.forward
    layer.forward = lambda x: 2 * forward(x)


CHANGES: dict[str, Callable[[lff.Modulated, str], object]] = {
    "replaced": _replace,
    "forward hook": lambda e, name: e.get_submodule(name).register_forward_hook(lambda m, x, out: 2 * out),
    "forward pre-hook": lambda e, name: e.get_submodule(name).register_forward_pre_hook(lambda m, x: (2 * x[0],)),
    "backward hook": lambda e, name: e.get_submodule(name).register_full_backward_hook(lambda m, into, out: None),
    "another forward": lambda e, name: _double_forward(e.get_submodule(name)),
}


@pytest.mark.parametrize("name", ["features", "norm_1", "dense_1", "norm_2", "dropout", "dense_2"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_layer_that_was_replaced_or_hooked_is_called(change: str, name: str) -> None:
    encode, x = lff.Modulated(lff.FourierFeatures(2, 8), 6, layer_norm=True).to(DEVICE), torch.randn(5, 2, device=DEVICE)
    assert used(lambda: encode(x)) == {"fourier_mlp"}
    CHANGES[change](encode, name)
    torch.manual_seed(0)
    ours = encode(x)
    assert "fourier_mlp" not in used(lambda: encode(x))
    encode.impl = "torch"
    torch.manual_seed(0)
    assert_near(ours, encode(x))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: parametrizations.orthogonal(e.dense_1), "dense_1 is a ParametrizedLinear"),
        (lambda e: setattr(e.norm_2, "eps", 0.1), "norm_1 and norm_2 are not alike"),
        (lambda e: setattr(e, "norm_2", nn.Identity()), "norm_1 and norm_2 are not alike"),
        (lambda e: e.dense_1.register_parameter("bias", None), "a layer has no bias"),
        (lambda e: e.norm_2.register_parameter("bias", None), "a layer has no bias"),
        (lambda e: setattr(e.dropout, "p", 1.0), "all units are dropped"),
        (lambda e: e.dense_1.register_forward_hook(print), "dense_1 has hooks"),
    ],
)
def test_what_the_kernel_cannot_stand_for_is_said_once(change: Callable[[lff.Modulated], object], reason: str) -> None:
    implementation.SAID.clear()
    encode = lff.Modulated(lff.FourierFeatures(2, 8), 6, layer_norm=True, impl="triton").to(DEVICE)
    change(encode)
    x = torch.randn(5, 2, device=DEVICE)
    with pytest.warns(UserWarning, match=rf"the fused kernels are not used \({reason}"):
        encode(x)
    assert "fourier_mlp" not in used(lambda: encode(x))


def test_global_hooks_are_called() -> None:
    encode, x = lff.Modulated(lff.FourierFeatures(2, 8), 6).to(DEVICE), torch.randn(5, 2, device=DEVICE)
    seen: list[str] = []
    hook = nn.modules.module.register_module_forward_hook(lambda module, inputs, out: seen.append(type(module).__name__))
    encode(x)
    hook.remove()
    assert seen.count("Linear") == 2


class Wrapped(Tensor):
    """A tensor that is not what it holds, as sharded and quantised ones are."""


def test_tensors_of_other_kinds_are_left_to_torch() -> None:
    implementation.SAID.clear()
    encode, positions = made("Learnable-Fourier")
    with pytest.warns(UserWarning, match="the kernels take plain tensors, got a Wrapped"):
        encode(positions.as_subclass(Wrapped))


def test_dropout_acts_where_its_module_trains() -> None:
    encode = lff.LearnableFourier(2, 40, dropout=0.5, impl="triton").to(DEVICE)
    x = torch.randn(50, 2, device=DEVICE)
    assert not torch.equal(encode(x), encode(x))
    encode.eval()
    assert torch.equal(encode(x), encode(x))
    encode.encoder.dropout.train()  # Monte Carlo dropout
    assert not torch.equal(encode(x), encode(x))


def test_fake_tensors_pass_through() -> None:
    for method in ("Learnable-Fourier+MLP-2/2", "Sine-2D", "Fixed-Fourier"):
        with FakeTensorMode(), torch.device(DEVICE):
            encode, positions = small(method)
            with torch.autocast(DEVICE, dtype=torch.bfloat16):
                out = encode(positions.requires_grad_())
            assert (out.shape, out.dtype) == ((20, DEPTH), torch.bfloat16)
            out.sum().backward()
            assert positions.grad.shape == positions.shape


def test_copies_and_pickles_take_the_kernel_too() -> None:
    encode, positions = made("Learnable-Fourier+MLP")
    expected_out = encode(positions)
    for clone in (copy.deepcopy(encode), pickle.loads(pickle.dumps(encode))):
        assert clone.impl == clone.encoder.impl == clone.encoder.features.impl == "triton"
        assert torch.equal(clone(positions), expected_out)
        assert used(lambda clone=clone: clone(positions)) == {"fourier_mlp"}


def test_two_steps_under_ddp_are_those_of_one_process(tmp_path: Path) -> None:
    encode, positions = made("Learnable-Fourier+MLP-2/2", layer_norm=True)
    alone = copy.deepcopy(encode)
    alone.impl = "torch"
    distributed.init_process_group("gloo", store=distributed.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        for model in (nn.parallel.DistributedDataParallel(encode), alone):
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(2):
                optimiser.zero_grad()
                model(positions).square().mean().backward()
                optimiser.step()
    finally:
        distributed.destroy_process_group()
    for ours, theirs in zip(encode.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
