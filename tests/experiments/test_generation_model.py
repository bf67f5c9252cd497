"""The Reformer of the paper: its size to the last digit, its start, its positions."""

import math
from typing import Any

import pytest
import torch
from reformers import reformer, small
from torch import nn

import lff
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.tasks.generation.config import METHODS, paper
from lff.experiments.tasks.generation.model import build
from lff.experiments.tasks.generation.pictures import tokens
from lff.experiments.tasks.generation.positions import PixelPositions, shown


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("none(colours=False)", 60_614_912),
        ("Sine-1D", 60_614_912),
        ("Sine-2D(colours=False)", 60_614_912),
        ("Embed-2D", 60_664_832),
        ("Embed-1D", 73_197_824),
        ("Learnable-Fourier+MLP", 60_668_385 - 384 - 1),
        ("Learnable-Fourier+MLP(bias=True)", 60_668_385 - 1),
    ],
)
def test_the_papers_models_have_the_parameters_that_its_source_counts(method: str, parameters: int) -> None:
    with torch.device("meta"):
        assert count(build(paper(), parse(method), 3)) == parameters


def test_with_the_bias_and_the_kl_loss_the_counted_run_is_met_to_the_last_digit() -> None:
    with torch.device("meta"):
        model = build(paper(), parse("Learnable-Fourier+MLP(bias=True)"), 3)
        assert count(model) + count(lff.KLRegularizer(model)) == 60_668_385


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_each_token_its_own_position_but_for_what_it_cannot_tell(method: str) -> None:
    row = parse(method)
    model = build(small(), row._replace(options={}), 3)
    encoded = model.positions(torch.arange(192).expand(4, -1))
    assert encoded.shape == (1, 192, 32)
    assert len(encoded[0].unique(dim=0)) == 192


@pytest.mark.parametrize("method", ["Embed-2D", "Embed-1D", "Sine-1D", "Learnable-Fourier+MLP", "MLP", "Sine-2D(colours=False)"])
def test_a_token_alone_is_encoded_as_in_the_whole_picture(method: str) -> None:
    positions = build(small(), parse(method), 3).positions
    whole = positions(torch.arange(192).expand(2, -1))
    for numbers in (torch.tensor([[77]]), torch.tensor([[5, 100], [6, 191]]), torch.arange(10, 30).expand(2, -1)):
        torch.testing.assert_close(positions(numbers), whole[0][numbers[:1] if numbers.stride(0) == 0 else numbers])


def test_a_token_has_the_place_of_its_pixel_and_the_vector_of_its_colour() -> None:
    encoding = lff.LearnableFourier(2, 6)
    positions = PixelPositions(encoding, 4, 3, colours=2)
    token = (1 * 4 + 2) * 3 + 1  # row 1, column 2, green
    assert positions.colours is not None
    expected = torch.cat([encoding(torch.tensor([1.0, 2.0])), positions.colours[1]])
    torch.testing.assert_close(positions(torch.arange(48).expand(5, -1))[0, token], expected)
    picture = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    picture[0, 1, 1, 2] = 9
    assert tokens(picture)[0].nonzero().tolist() == [[token]]


def test_an_encoding_that_numbers_tokens_is_shown_by_its_first_colour() -> None:
    positions = build(small(), parse("Embed-1D"), 3).positions
    picture = shown(positions)(lff.grid((8, 8)))
    torch.testing.assert_close(picture.reshape(64, -1), positions(torch.arange(192)[None])[0, ::3])


def test_the_start_is_that_of_trax() -> None:
    torch.manual_seed(0)
    host = build(small(width=256, head=64, heads=2), parse("Embed-2D"), 3).host
    words = host.reformer.embeddings.word_embeddings.weight
    assert words.std().item() == pytest.approx(1 / 16, rel=0.02)
    assert words.abs().max() <= math.sqrt(3) / 16  # uniform
    layer = host.reformer.encoder.layers[0]
    for dense in (layer.attention.self_attention.query_key, layer.feed_forward.dense.dense, host.lm_head.decoder):
        fan_out, fan_in = dense.weight.shape
        assert dense.weight.std().item() == pytest.approx(math.sqrt(2 / (fan_in + fan_out)), rel=0.02)
        assert dense.weight.abs().max() <= math.sqrt(6 / (fan_in + fan_out))
    biases: list[Any] = [layer.feed_forward.dense.dense.bias, host.lm_head.bias]
    for bias in biases:
        assert 0 < bias.std() < 2e-6
    tables = host.reformer.embeddings.position_embeddings
    for table in (*tables.encoding.tables, tables.colours):
        assert table.std().item() == pytest.approx(1.0, rel=0.15)


def test_the_heads_bias_is_used_and_learns() -> None:
    model = reformer()
    ids = torch.randint(256, (1, 192))
    before = model.eval()(ids)
    with torch.no_grad():
        model.host.lm_head.bias[3] += 2.0
    torch.testing.assert_close(model(ids) - before, 2.0 * torch.eye(256)[3].expand_as(before), atol=1e-5, rtol=0)
    model.train()(ids).sum().backward()
    assert model.host.lm_head.bias.grad.tolist() == pytest.approx([192.0] * 256)


def test_the_first_token_is_told_nothing_and_the_last_is_not_read() -> None:
    model = reformer().eval()
    ids = torch.randint(256, (2, 192))
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % 256
    torch.testing.assert_close(model(ids), model(changed), rtol=0, atol=0)
    logits = model(ids)
    torch.testing.assert_close(logits[0, 0], logits[1, 0], atol=1e-4, rtol=1e-4)


def test_methods_share_the_hosts_weights_at_one_seed() -> None:
    def host(method: str) -> dict[str, torch.Tensor]:
        torch.manual_seed(5)
        state = build(small(), parse(method), 3).state_dict()
        return {name: value for name, value in state.items() if "position" not in name}

    own = host("Embed-2D")
    for method in ("Learnable-Fourier+MLP", "Sine-1D", "Embed-1D"):
        other = host(method)
        assert own.keys() == other.keys()
        assert all(torch.equal(own[name], other[name]) for name in own)


@pytest.mark.parametrize(
    ("method", "said"), [("Sine-2D(hidden=3)", "Sine-2D\\(hidden=3\\) cannot be made"), ("MLP(bias=True)", "bias=True is for")]
)
def test_an_option_that_a_method_does_not_have_is_refused(method: str, said: str) -> None:
    with pytest.raises(Problem, match=said):
        build(small(), parse(method), 3)
