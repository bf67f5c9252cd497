"""Our layers against transformers' own: the same numbers for the same hash seed."""

import copy
from typing import Any

import pytest
import torch
from reformers import reformer
from torch import Tensor, nn

from lff.experiments.tasks.generation import lsh
from lff.experiments.tasks.generation.bits import nats
from lff.experiments.tasks.generation.fast import FastLayer, speed_up


def step(model: nn.Module, ids: Tensor, seed: int = 7) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits and gradients of a training step."""
    torch.manual_seed(seed)  # decides the hash seeds
    model.zero_grad()
    logits = model.train()(ids)
    nats(logits, ids).mean().backward()
    return logits.detach(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_logits_and_gradients_are_those_of_transformers(recompute: bool, rounds: int) -> None:
    own = reformer(host="transformers", rounds=rounds)
    fast = copy.deepcopy(own)
    speed_up(fast, recompute=recompute)
    ids = torch.randint(256, (3, 192))
    (logits, gradients), (ours, our_gradients) = step(own, ids), step(fast, ids)
    torch.testing.assert_close(ours, logits, rtol=1e-5, atol=1e-5)
    assert gradients.keys() == our_gradients.keys() == dict(own.named_parameters()).keys()
    for name, gradient in gradients.items():  # the host rebuilds a layer's inputs from its outputs, hence the tolerance
        torch.testing.assert_close(our_gradients[name], gradient, rtol=1e-3, atol=1e-4 * gradient.abs().max().item(), msg=name)
    own.eval(), fast.eval()
    with torch.no_grad():
        torch.testing.assert_close(fast(ids), own(ids), rtol=1e-5, atol=1e-5)


def test_in_float64_nothing_but_rounding_is_left() -> None:
    own = reformer(host="transformers").double()
    fast = speed_up(copy.deepcopy(own))
    ids = torch.randint(256, (2, 192))
    (logits, gradients), (ours, our_gradients) = step(own, ids), step(fast, ids)
    torch.testing.assert_close(ours, logits, rtol=1e-9, atol=1e-9)
    for name, gradient in gradients.items():
        torch.testing.assert_close(our_gradients[name], gradient, rtol=1e-7, atol=1e-10, msg=name)


def test_other_hash_seeds_give_other_numbers_and_evaluation_always_the_same() -> None:
    model = reformer()
    ids = torch.randint(256, (2, 192))
    assert torch.equal(step(model, ids, 1)[0], step(model, ids, 1)[0])
    assert not torch.allclose(step(model, ids, 1)[0], step(model, ids, 2)[0], atol=1e-3)
    model.eval()
    first = model(ids)
    torch.manual_seed(99)
    assert torch.equal(model(ids), first)


def test_autocast_holds_in_the_backward_pass_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers' own runs its layers again without it: then the gradient is that of another function."""
    seen: dict[str, list[torch.dtype]] = {}

    def watch(name: str, model: Any) -> None:
        dense = model.host.reformer.encoder.layers[0].feed_forward.dense.dense
        dense.register_forward_hook(lambda module, inputs, out: seen.setdefault(name, []).append(out.dtype))

    for name in ("transformers", "recomputed"):
        model = reformer(host=name).train()
        watch(name, model)
        ids = torch.randint(256, (1, 192))
        with torch.autocast("cpu", torch.bfloat16):
            loss = nats(model(ids), ids).mean()
        loss.backward()
    assert seen == {"transformers": [torch.bfloat16, torch.float32], "recomputed": [torch.bfloat16, torch.bfloat16]}


def test_what_is_not_a_plain_pass_is_left_to_the_host() -> None:
    own = reformer(host="transformers").eval()
    fast = copy.deepcopy(own)
    speed_up(fast)
    own.seed(), fast.seed()
    ids = torch.randint(256, (1, 192))
    for options in ({"use_cache": True}, {"num_hashes": 1}, {"output_hidden_states": True}, {"output_attentions": True}):
        expected, found = own.host(ids, **options), fast.host(ids, **options)
        assert found.keys() == expected.keys()
        torch.testing.assert_close(found.logits, expected.logits)
    for length in (10, 16):  # too short for chunks
        torch.testing.assert_close(fast.host(ids[:, :length]).logits, own.host(ids[:, :length]).logits)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lsh: setattr(lsh, "num_chunks_after", 1), "'after': 1"),
        (lambda lsh: setattr(lsh, "num_buckets", [4, 4]), r"\[4, 4\] buckets"),
        (lambda lsh: setattr(lsh, "dropout", 0.1), "no dropout"),
    ],
)
def test_a_model_that_it_does_not_know_is_refused_and_left_as_it_was(change: Any, said: str) -> None:
    model = reformer(host="transformers")
    change(model.host.reformer.encoder.layers[1].attention.self_attention)
    with pytest.raises(ValueError, match=said):
        speed_up(model)
    assert not any(isinstance(module, FastLayer) for module in model.modules())
    with pytest.raises(ValueError, match="one ReformerEncoder, got 0 in a Linear"):
        speed_up(nn.Linear(2, 2))


def test_sorting_and_its_undoing_have_the_gradients_of_indexing() -> None:
    order, undo = lsh.sort(torch.randint(5, (2, 3, 2, 12)))
    x = torch.randn(2, 3, 12, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(2, 3, 2, 12, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: lsh.Sorted.apply(x, order, undo), x)
    assert torch.autograd.gradcheck(lambda y: lsh.Restored.apply(y, order, undo), y)
    torch.testing.assert_close(lsh.Restored.apply(lsh.Sorted.apply(x, order, undo), order, undo), x[:, :, None].expand_as(y))


def test_a_token_attends_to_itself_only_where_there_is_no_other() -> None:
    dots, total = lsh.masked(torch.zeros(2, 3), torch.tensor([0, 2]), torch.tensor([0, 1, 2]))
    probabilities = torch.exp(dots - total)
    torch.testing.assert_close(probabilities, torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("host", ["kept", "recomputed"])
def test_compiled_layers_give_the_same_numbers(host: str) -> None:
    model = reformer(host=host)
    ids = torch.randint(256, (2, 192))
    logits, gradients = step(model, ids)
    for layer in model.host.reformer.encoder.layers:
        layer.compile()
    ours, our_gradients = step(model, ids)
    torch.testing.assert_close(ours, logits, rtol=1e-4, atol=1e-4)
    for name, gradient in gradients.items():
        torch.testing.assert_close(our_gradients[name], gradient, rtol=1e-3, atol=1e-4 * gradient.abs().max().item(), msg=name)
