import math

import pytest
import torch
from test_captioning_model import CPU, build, screens
from torch import Tensor

from lff.experiments.tasks.captioning.beam import search
from lff.experiments.tasks.captioning.model import Captioner
from lff.experiments.tasks.captioning.words import END, PADDING, START, UNKNOWN

LENGTH = 6


@pytest.fixture
def searched() -> tuple[Captioner, Tensor]:
    """A model that is not sure of anything, and 14 widgets."""
    model = build().eval()
    torch.nn.init.normal_(model.say.weight, std=0.5)
    return model, model.encode(screens(3, 5, 6, 7, 8, 9, 4).batch(torch.arange(7), CPU)).detach()


def chances(model: Captioner, memory: Tensor, words: list[int]) -> Tensor:
    """Log-probabilities of the next word of one widget."""
    return model.decode(memory[None], torch.tensor([[START, *words]]))[0, -1].log_softmax(-1)


def score(model: Captioner, memory: Tensor, words: list[int], penalty: float) -> float:
    """Of a caption, word by word."""
    total = sum(chances(model, memory, words[:i])[word].item() for i, word in enumerate(words))
    return total / ((5 + len(words)) / 6) ** penalty


def greedy(model: Captioner, memory: Tensor) -> list[int]:
    words: list[int] = []
    while len(words) < LENGTH and END not in words:
        likely = chances(model, memory, words).clone()
        likely[[PADDING, UNKNOWN, START] if words else [PADDING, UNKNOWN, START, END]] = -math.inf
        words.append(int(likely.argmax()))
    return words


def stripped(row: Tensor) -> list[int]:
    return [word for word in row.tolist() if word != PADDING]


@torch.no_grad()
def test_width_one_is_greedy(searched: tuple[Captioner, Tensor]) -> None:
    model, memory = searched
    found = search(model, memory, length=LENGTH, width=1, penalty=1.0)
    assert [stripped(row) for row in found.words] == [greedy(model, each) for each in memory]


@torch.no_grad()
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_no_width_scores_below_greedy_and_scores_are_those_of_the_model(
    searched: tuple[Captioner, Tensor], penalty: float
) -> None:
    model, memory = searched
    one = search(model, memory, length=LENGTH, width=1, penalty=penalty)
    four = search(model, memory, length=LENGTH, width=4, penalty=penalty)
    assert bool((four.score >= one.score).all())
    assert bool((four.score > one.score + 1e-4).any())  # else the test says nothing
    for each, row, found in zip(memory, four.words, four.score, strict=True):
        assert score(model, each, stripped(row), penalty) == pytest.approx(found.item(), abs=1e-4)


@torch.no_grad()
def test_a_beam_as_wide_as_all_captions_finds_the_best_of_them(searched: tuple[Captioner, Tensor]) -> None:
    model, memory = searched
    letters = range(4, 12)
    every = [[a, END] for a in letters] + [[a, b] for a in letters for b in letters]
    found = search(model, memory[:3], length=2, width=80, penalty=1.0)
    for each, got in zip(memory[:3], found.score, strict=True):
        assert max(score(model, each, words, 1.0) for words in every) == pytest.approx(got.item(), abs=1e-4)


@torch.no_grad()
def test_widgets_are_searched_together_as_each_would_be_alone(searched: tuple[Captioner, Tensor]) -> None:
    model, memory = searched
    together = search(model, memory, length=LENGTH, width=4, penalty=1.0)
    for number in range(len(memory)):
        alone = search(model, memory[number : number + 1], length=LENGTH, width=4, penalty=1.0)
        assert torch.equal(alone.words[0], together.words[number])


@torch.no_grad()
def test_no_caption_is_empty_or_has_words_that_are_none(searched: tuple[Captioner, Tensor]) -> None:
    model, memory = searched
    with torch.no_grad():
        model.say.bias[[PADDING, END, UNKNOWN, START]] = 20.0
    words = search(model, memory, length=LENGTH, width=4, penalty=1.0).words
    assert bool((words[:, 0] > START).all())
    assert [stripped(row)[1:] for row in words] == [[END]] * len(words)
