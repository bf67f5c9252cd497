"""What holds for every host: its own encoding changes nothing, another one trains, takes other sizes, and comes out again."""

import copy
import pickle
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hosts import HOSTS, Case
from torch import nn

import lff

# The hosts' own deprecation notices are not ours to mend.
pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]

# The pictures' hosts, whose height and width an exported graph leaves open.
PATCHES = [name for name, case in HOSTS.items() if case.coords == 2 and not case.options and "DETR" not in name]


@pytest.fixture(params=sorted(HOSTS))
def case(request: pytest.FixtureRequest) -> Case:
    return HOSTS[request.param]


def learnable(model: nn.Module, case: Case, **options) -> lff.Encoding:
    encoding = lff.LearnableFourier(case.coords, case.own(model).depth, gamma=4.0, **options)
    lff.swap(model, encoding, **dict(case.options))
    return encoding


def test_the_hosts_own_encoding_changes_no_bit(case: Case) -> None:
    model = case.make().eval()
    before = case.run(model, case.size)
    assert lff.swap(model, case.own(model), **dict(case.options)) is model
    assert torch.equal(case.run(model, case.size), before)
    lff.unswap(model)
    learnable(model, case)
    assert not torch.equal(case.run(model, case.size), before)  # so an encoding does arrive at the output


def test_a_training_step_reaches_every_parameter_of_the_encoding(case: Case) -> None:
    model = case.make().train()
    encoding = learnable(model, case)
    case.run(model, case.size).square().sum().backward()
    for name, parameter in encoding.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    assert {id(p) for p in encoding.parameters()} <= {id(p) for p in model.parameters()}


def test_twice_the_height_goes_in(case: Case) -> None:
    model = case.make().eval()
    learnable(model, case)
    assert case.run(model, case.taller).isfinite().all()


def test_undone_the_model_is_what_it_was(case: Case) -> None:
    model = case.make().eval()
    before, keys = case.run(model, case.size), list(model.state_dict())
    kind = {name: type(module) for name, module in model.named_modules()}
    learnable(model, case)
    assert lff.unswap(model) is model
    assert torch.equal(case.run(model, case.size), before)
    assert list(model.state_dict()) == keys
    assert {name: type(module) for name, module in model.named_modules()} == kind


def test_copies_pickles_and_weights_go_along(case: Case, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = case.make().eval()
    learnable(model, case)
    expected = case.run(model, case.taller)
    for clone in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(case.run(clone, case.taller), expected)
    other = case.make().eval()
    learnable(other, case)
    other.load_state_dict(model.state_dict())
    assert torch.equal(case.run(other, case.taller), expected)
    if hasattr(model, "save_pretrained"):
        model.save_pretrained(tmp_path)
        other = type(model).from_pretrained(tmp_path).eval()  # finds all but the table, which is no more
        learnable(other, case)
        assert not torch.equal(case.run(other, case.taller), expected)
        assert lff.load_swapped(other, tmp_path) is other
        assert torch.equal(case.run(other, case.taller), expected)
    lff.unswap(copy.deepcopy(model))


def test_in_bfloat16_it_runs_and_keeps_its_frequencies(case: Case) -> None:
    model = case.make().eval()
    encoding = learnable(model, case)
    before = encoding.encoder.features.w_r.detach().clone()
    model.bfloat16()
    assert torch.equal(encoding.encoder.features.w_r, before)
    torch.manual_seed(0)
    if case.coords == 1 or case.options:
        out = model(torch.randint(5, 50, case.size))
    else:
        out = model(torch.randn(2, 3, *case.size).bfloat16())
    out = out if isinstance(out, torch.Tensor) else out[case.read]
    assert out.dtype == torch.bfloat16
    lff.unswap(model)
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}


def test_a_wrong_encoding_leaves_the_model_untouched(case: Case) -> None:
    model = case.make().eval()
    before, depth = case.run(model, case.size), case.own(model).depth
    with pytest.raises(ValueError, match=rf"encoding must have depth {depth}, .* got {depth + 2}"):
        lff.swap(model, lff.LearnableFourier(case.coords, depth + 2), **dict(case.options))
    with pytest.raises(ValueError, match=rf"encoding must take {case.coords} coordinates in .*, got one that takes 3"):
        lff.swap(model, lff.LearnableFourier(3, depth), **dict(case.options), fit=True)
    with pytest.raises(ValueError, match="class_token must be one of 'keep', 'zero', got 'drop'"):
        lff.swap(model, lff.LearnableFourier(case.coords, depth), class_token="drop")
    with pytest.raises(ValueError, match="unseen must be one of 'rescale', 'extend', 'interpolate', got 'crop'"):
        lff.swap(model, lff.LearnableFourier(case.coords, depth), unseen="crop")
    with pytest.raises(ValueError, match=r"model must have been swapped by lff\.swap, got a"):
        lff.unswap(model)
    learnable(model, case)
    with pytest.raises(ValueError, match=r"that is swapped already; lff\.unswap it first"):
        lff.swap(model, lff.LearnableFourier(case.coords, depth), **dict(case.options))
    lff.unswap(model)
    assert torch.equal(case.run(model, case.size), before)


def test_an_unknown_model_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"model must contain one of .*ViTEmbeddings.*; got a Sequential\."):
        lff.swap(nn.Sequential(nn.Linear(2, 2)), lff.Sine(2, 8))
    two = nn.ModuleList([HOSTS["ViT"].make(), HOSTS["timm ViT"].make()])
    with pytest.raises(ValueError, match=r"model must contain one encoding, got 2: 0\.vit\.embeddings, 1; pass the submodule"):
        lff.swap(two, lff.Sine(2, 32))


@pytest.mark.parametrize("name", PATCHES)
def test_what_stands_in_front_keeps_its_row_or_loses_it(name: str) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    learnable(model, case)
    (position,) = [m for m in model.modules() if type(m).__name__ == "GridPositions"]
    kept = position(4, 4)
    assert kept.shape[1] == position.tokens + 16
    assert (position.prefix is not None) == (position.tokens > 0)
    lff.unswap(model)
    encoding = position.encoding
    lff.swap(model, encoding, class_token="zero")
    (position,) = [m for m in model.modules() if type(m).__name__ == "GridPositions"]
    zeroed = position(4, 4)
    assert not zeroed[:, : position.tokens].any()
    torch.testing.assert_close(zeroed[:, position.tokens :], kept[:, position.tokens :])


@pytest.mark.parametrize("name", ["ViT", "timm ViT"])
def test_other_sizes_are_asked_inside_the_extent_or_beyond_it(name: str) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    depth = case.own(model).depth

    def encoded(**options) -> torch.Tensor:
        torch.manual_seed(0)
        lff.swap(model, lff.LearnableFourier(2, depth), class_token="zero", **options)
        (position,) = [m for m in model.modules() if type(m).__name__ == "GridPositions"]
        out = position(6, 4)[:, position.tokens :]
        lff.unswap(model)
        return out

    torch.manual_seed(0)
    encoding = lff.LearnableFourier(2, depth)
    asked = {
        "rescale": lff.rescale(lff.grid((6, 4)), (6, 4), (4, 4)),
        "extend": lff.grid((6, 4)),
    }
    for unseen, positions in asked.items():
        torch.testing.assert_close(encoded(unseen=unseen), encoding(positions).reshape(1, 24, depth))
    normalised = encoding(lff.grid((6, 4), normalize=True)).reshape(1, 24, depth)
    torch.testing.assert_close(encoded(normalize=True, unseen="extend"), normalised)


@pytest.mark.parametrize("name", ["ViT", "timm ViT"])
def test_a_table_is_resized_bicubically_at_other_sizes(name: str) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    encoding = lff.Embed((4, 4), case.own(model).depth, join="cell")
    lff.swap(model, encoding, class_token="zero", unseen="interpolate")
    (position,) = [m for m in model.modules() if type(m).__name__ == "GridPositions"]
    table = encoding.tables[0].detach()
    torch.testing.assert_close(position(4, 4)[0, position.tokens :], table, rtol=0, atol=0)
    picture = table.reshape(1, 4, 4, -1).permute(0, 3, 1, 2)
    wanted = torch.nn.functional.interpolate(picture, (6, 4), mode="bicubic", align_corners=False)
    torch.testing.assert_close(position(6, 4)[0, position.tokens :], wanted[0].flatten(1).T)


@pytest.mark.parametrize("name", ["ViT", "BERT", "Reformer", "timm ViT"])
def test_positions_that_a_batch_shares_are_encoded_once(name: str) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    seen: list[torch.Size] = []
    encoding = learnable(model, case)
    encoding.register_forward_hook(lambda _, inputs, out: seen.append(out.shape))
    case.run(model, case.size)
    (shape,) = seen
    assert shape.numel() == encoding.depth * (16 if "ViT" in name else case.size[1])


def test_detr_never_waits_for_a_device_to_look_at_a_mask() -> None:
    model = HOSTS["DETR"].make()
    lff.swap(model, lff.LearnableFourier(2, 32, features=4, hidden=2))
    swapped = model.model.position_embedding.to("meta")  # where nothing can be looked at
    mask = torch.ones(2, 3, 4, dtype=torch.bool, device="meta")
    assert swapped.encode(mask).shape == (2, 3, 4, 32)


def test_detr_encodes_image_by_image_only_where_a_mask_demands_it() -> None:
    model = HOSTS["DETR"].make().eval()
    seen: list[torch.Size] = []
    encoding = learnable(model, HOSTS["DETR"])
    encoding.register_forward_hook(lambda _, inputs, out: seen.append(out.shape))
    pixels, mask = torch.randn(2, 3, 96, 96), torch.ones(2, 96, 96, dtype=torch.long)
    model(pixels, mask)
    mask[1, :, 48:] = 0
    model(pixels, mask)
    assert [shape[0] for shape in seen] == [1, 2]


@pytest.mark.compile
@pytest.mark.parametrize("name", [*PATCHES, "BERT", "DETR"])
def test_compiled_it_gives_the_same(name: str) -> None:
    torch._dynamo.reset()
    case = HOSTS[name]
    model = case.make().eval()
    learnable(model, case)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=name != "DETR")
    for size in (case.size, case.taller):
        torch.testing.assert_close(case.run(compiled, size), case.run(model, size), atol=1e-4, rtol=1e-4)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["ViT", "DINOv2", "CLIP", "SigLIP", "timm ViT"])
def test_exported_to_onnx_at_one_size_it_runs_at_another(name: str, tmp_path: Path) -> None:
    case = HOSTS[name]
    model = case.make().eval()
    learnable(model, case)
    patch = case.size[0] // 4

    class Pictures(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            out = self.model(pixels)
            return out if isinstance(out, torch.Tensor) else out[case.read]

    rows, cols = torch.export.Dim("rows", min=2, max=64), torch.export.Dim("cols", min=2, max=64)
    program = torch.onnx.export(
        Pictures().eval(),
        (torch.randn(2, 3, *case.size),),
        dynamo=True,
        dynamic_shapes=({2: patch * rows, 3: patch * cols},),
        input_names=["pixels"],
        verbose=False,
    )
    program.save(path := tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for size in (case.size, case.taller, (patch * 3, patch * 5)):
        torch.manual_seed(0)
        pixels = torch.randn(2, 3, *size)
        (out,) = session.run(None, {"pixels": pixels.numpy()})
        np.testing.assert_allclose(out, Pictures().eval()(pixels).detach().numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["ViT", "DINOv2", "DETR", "BERT"])
def test_gradient_checkpointing_gives_the_same_gradients(name: str) -> None:
    case = HOSTS[name]
    model = case.make().train()
    encoding = learnable(model, case)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for config in (model.config,):
        config.dropout = config.attention_dropout = config.activation_dropout = 0.0
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model.zero_grad()
        torch.manual_seed(0)
        case.run(model, case.size).square().sum().backward()
        gradients.append([p.grad.clone() for p in encoding.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-4, rtol=1e-3)
