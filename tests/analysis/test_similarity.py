import pytest
import torch

import lff
from conftest import small
from lff.analysis.similarity import similarity


def test_a_position_is_like_itself(method: str) -> None:
    encode, positions = small(method)
    itself = similarity(encode, positions, positions).diagonal()
    expected = encode(positions).norm(dim=-1) > 0  # "none" is zero everywhere
    torch.testing.assert_close(itself, expected.float())


def test_similarity_is_symmetric_and_bounded(method: str) -> None:
    encode, positions = small(method)
    found = similarity(encode, positions, positions[:7])
    torch.testing.assert_close(found, similarity(encode, positions[:7], positions).T)
    assert found.abs().max() <= 1 + 1e-5


def test_fourier_features_depend_on_the_offset_alone() -> None:
    encode = lff.FourierFeatures(2, 64, gamma=2.0).double()
    at, offsets, shift = torch.rand(1, 2).double(), torch.randn(5, 6, 2).double(), torch.tensor([3.0, -8.0]).double()
    torch.testing.assert_close(similarity(encode, at + offsets, at), similarity(encode, at + shift + offsets, at + shift))
    table = lff.Embed((40, 40), 64, join="cell")
    near = similarity(table, lff.grid((4, 4)), lff.grid((1, 1))[0])
    far = similarity(table, lff.grid((4, 4)) + 9, lff.grid((1, 1))[0] + 9)
    assert (near - far).abs().max() > 0.1  # a table does not


def test_it_is_the_cosine_of_the_angle() -> None:
    encode, positions = lff.MLP(2, 16), torch.rand(3, 4, 2)
    found = similarity(encode, positions, positions[0])
    expected = torch.cosine_similarity(encode(positions)[None], encode(positions[0])[:, None, None], dim=-1)
    assert found.shape == (4, 3, 4)
    torch.testing.assert_close(found, expected.detach())


def test_an_encoding_of_zeros_is_like_nothing() -> None:
    found = similarity(lff.Zero(2, 8), lff.grid((3, 3)), torch.zeros(2, 2))
    assert torch.equal(found, torch.zeros(2, 3, 3))


@pytest.mark.parametrize("training", [True, False])
def test_dropout_plays_no_part_and_the_mode_stays(training: bool) -> None:
    encode = lff.LearnableFourier(2, 16, dropout=0.5).train(training)
    assert torch.equal(*(similarity(encode, lff.grid((4, 4)), torch.zeros(1, 2)) for _ in range(2)))
    assert encode.training is training
    assert not similarity(encode, lff.grid((4, 4)), torch.zeros(1, 2)).requires_grad


def test_half_precision_is_compared_in_float() -> None:
    assert similarity(lff.MLP(2, 16).bfloat16(), lff.grid((4, 4)), torch.zeros(1, 2)).dtype == torch.float32
