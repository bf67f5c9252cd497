"""Decoding token by token: transformers' own where that is right, and what is drawn from it."""

import pytest
import torch
from reformers import reformer
from torch import Tensor

from lff.experiments.tasks.generation.decode import Decoder, draw
from lff.experiments.tasks.generation.generate import mosaic, paint
from lff.experiments.tasks.generation.model import PixelModel


def by_transformers(model: PixelModel, ids: Tensor, first: int) -> Tensor:
    """The logits after `first` tokens and after every further one, by the host's own cache."""
    found, cache = [], None
    with torch.no_grad():
        for start, stop in [(0, first), *((t, t + 1) for t in range(first, ids.shape[1]))]:
            out = model.host(ids[:, start:stop], past_buckets_states=cache, use_cache=True)
            found, cache = [*found, out.logits[:, -1]], out.past_buckets_states
    return torch.stack(found, dim=1)


def by_us(model: PixelModel, ids: Tensor, first: int) -> Tensor:
    decoder = Decoder(model.host, len(ids), ids.shape[1])
    return torch.stack([decoder(ids[:, :first]), *(decoder(ids[:, t : t + 1]) for t in range(first, ids.shape[1]))], dim=1)


@pytest.mark.parametrize("method", ["Embed-2D", "Learnable-Fourier+MLP", "Sine-1D"])
@pytest.mark.parametrize("first", [1, 48])
def test_a_batch_is_decoded_as_transformers_decodes_each_sequence_alone(method: str, first: int) -> None:
    model = reformer(method).eval()
    model.seed()
    ids = torch.randint(256, (3, 70))
    alone = torch.cat([by_transformers(model, one, first) for one in ids.split(1)])
    torch.testing.assert_close(by_us(model, ids, first), alone, rtol=1e-4, atol=1e-4)


def test_transformers_mixes_up_a_batch() -> None:
    """Why it is not used for batches; when this fails it has been mended, and may be."""
    model = reformer().eval()
    model.seed()
    ids = torch.randint(256, (2, 60))
    together, alone = by_transformers(model, ids, 1), by_transformers(model, ids[1:], 1)
    torch.testing.assert_close(together[1, :16], alone[0, :16], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(together[1, 16:], alone[0, 16:], atol=0.1)


def test_what_is_given_at_once_or_one_by_one_ends_alike_up_to_how_chunks_fall() -> None:
    model = reformer().eval()
    model.seed()
    ids = torch.randint(256, (2, 40))
    decoder = Decoder(model.host, 2, 60)
    at_once = decoder(ids)  # two chunks, then eight tokens
    other = Decoder(model.host, 2, 60)
    other(ids[:, :32])
    for t in range(32, 40):
        last = other(ids[:, t : t + 1])
    torch.testing.assert_close(at_once, last)


def test_a_painted_picture_begins_with_what_is_given_and_repeats_with_its_seed() -> None:
    model = reformer(size=4, chunk=12, buckets=8).eval()
    model.seed()
    given = torch.randint(256, (2, 24))
    one, same, other = (paint(model, given, 48, seed=seed) for seed in (0, 0, 1))
    assert one.shape == (2, 48)
    assert torch.equal(one[:, :24], given)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    none = paint(model, torch.empty(2, 0, dtype=torch.long), 48, seed=0)
    assert not torch.equal(none[0], none[1])
    greedy = paint(model, torch.empty(2, 0, dtype=torch.long), 48, temperature=0.0)
    assert torch.equal(greedy[0], greedy[1])


def test_a_picture_that_is_sure_is_painted_as_it_was_learned() -> None:
    """A bias that leaves one value: every pixel of every picture has it, whatever the seed."""
    model = reformer(size=4, chunk=12, buckets=8).eval()
    model.seed()
    with torch.no_grad():
        model.host.lm_head.bias[77] = 1e4
    assert paint(model, torch.empty(1, 0, dtype=torch.long), 48).unique().tolist() == [77]


def test_temperature_and_top_k_are_those_of_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0]).log1p().expand(20_000, -1)
    generator = torch.Generator().manual_seed(0)

    def shares(**options: float) -> Tensor:
        return torch.bincount(draw(logits, generator, **options), minlength=4) / len(logits)

    weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
    torch.testing.assert_close(shares(), weights / 10, atol=0.015, rtol=0)
    torch.testing.assert_close(shares(temperature=0.5), weights**2 / 30, atol=0.015, rtol=0)
    torch.testing.assert_close(shares(top_k=2), torch.tensor([0, 0, 3 / 7, 4 / 7]), atol=0.015, rtol=0)
    torch.testing.assert_close(shares(temperature=0.0), torch.tensor([0.0, 0, 0, 1]), atol=0, rtol=0)


def test_the_mosaic_shows_every_picture_enlarged_in_its_row() -> None:
    red = torch.zeros(2, 3, 16, 16, dtype=torch.uint8)
    red[:, 0] = 255
    grey = torch.full((1, 1, 16, 16), 100, dtype=torch.uint8)
    image = mosaic([("Samples", red), ("", grey)])
    assert image.width == 8 * 18 * 16
    assert image.getpixel((5, 40)) == (255, 0, 0)
    assert image.getpixel((18 * 16 + 5, 40)) == (255, 0, 0)
    assert image.getpixel((2 * 18 * 16 + 5, 40)) == (255, 255, 255)  # there is no third
    assert image.getpixel((5, 32 + 18 * 16 + 5)) == (100, 100, 100)
    assert len({image.getpixel((x, y)) for x in range(100) for y in range(32)}) > 1  # a heading
