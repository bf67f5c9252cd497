import math
from typing import ClassVar

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


class Trap(Captioner):
    """The first word of the best caption leads through a second that a beam of two has no room for."""

    CHANCES: ClassVar[dict[tuple[int, ...], dict[int, float]]] = {
        (): {4: 0.4, 5: 0.35, 6: 0.25},
        (4,): {4: 0.3, 5: 0.25, 6: 0.25, END: 0.2},
        (5,): {4: 0.5, 5: 0.5},
        (4, 4): {END: 1.0},
    }

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def decode(self, memory: Tensor, before: Tensor, *, last: bool = False) -> Tensor:
        logits = torch.full((len(before), 1, 8), -1e4)
        for row, words in zip(logits, before.tolist(), strict=True):
            for word, chance in self.CHANCES.get(tuple(words[1:]), {4: 0.34, 5: 0.33, 6: 0.33}).items():
                row[0, word] = math.log(chance)
        return logits


def test_greedy_is_kept_where_the_beam_has_lost_it() -> None:
    one, two = (search(Trap(), torch.zeros(1, 2), length=3, width=width, penalty=0.0) for width in (1, 2))
    assert stripped(one.words[0]) == stripped(two.words[0]) == [4, 4, END]
    assert two.score.item() == pytest.approx(math.log(0.4 * 0.3), abs=1e-5)


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
