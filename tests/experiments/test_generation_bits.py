"""Bits per dimension: cases whose answer is known."""

import math

import pytest
import torch

from lff.experiments.tasks.generation.bits import bits, nats
from lff.experiments.tasks.generation.pictures import read, tokens


def test_a_model_that_knows_nothing_pays_eight_bits() -> None:
    ids = torch.randint(256, (3, 50))
    for constant in (0.0, -7.5):
        assert bits(nats(torch.full((3, 50, 256), constant).double(), ids).mean().item()) == pytest.approx(8.0, abs=1e-12)
        assert bits(nats(torch.full((3, 50, 256), constant).bfloat16(), ids).mean().item()) == pytest.approx(8.0, abs=1e-6)


def test_a_model_of_single_values_pays_the_entropy_of_the_pixels() -> None:
    ids = tokens(read(None, "val", 28).pixels[:200])
    share = torch.bincount(ids.flatten(), minlength=256).double() / ids.numel()
    entropy = -(share[share > 0] * share[share > 0].log2()).sum().item()
    assert 3 < entropy < 6  # half of a picture is black
    logits = share.clamp(min=1e-300).log().expand(*ids.shape, 256)
    assert bits(nats(logits, ids).mean().item()) == pytest.approx(entropy, abs=1e-9)


def test_a_case_by_hand() -> None:
    # Two tokens, the first with probability 1/2, the second with 1/8: (1 + 3) / 2 bits.
    logits = torch.full((1, 2, 256), float("-inf")).double()
    logits[0, 0, :2] = 0.0
    logits[0, 1, 10:18] = 4.2
    assert bits(nats(logits, torch.tensor([[1, 17]])).mean().item()) == pytest.approx(2.0, abs=1e-12)
    assert bits(math.log(2)) == 1.0


def test_the_first_position_counts_as_every_other() -> None:
    logits = torch.zeros(1, 4, 256).double()
    logits[0, 0, 5] = math.log(255.0)  # probability 1/2
    assert bits(nats(logits, torch.tensor([[5, 0, 0, 0]])).mean().item()) == pytest.approx((1 + 3 * 8) / 4, abs=1e-12)
