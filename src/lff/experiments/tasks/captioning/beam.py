"""Beam search for the captions of many widgets at once.

Shapes: k widgets, w the width of the beam, l words so far.
"""

from typing import NamedTuple

import torch
from einops import rearrange, repeat
from jaxtyping import Float, Int
from torch import Tensor

from lff.experiments.tasks.captioning.model import Captioner
from lff.experiments.tasks.captioning.words import END, PADDING, START, UNKNOWN


class Found(NamedTuple):
    """The words of the best caption of each widget, padding after its end, and its score."""

    words: Int[Tensor, "k l"]
    score: Float[Tensor, " k"]


def search(model: Captioner, memory: Float[Tensor, "k d"], *, length: int, width: int, penalty: float) -> Found:
    """The captions with the best score that a beam of `width` finds.

    A score is the log-probability of the words over ((5 + length) / 6) ^ penalty. Captions that have ended stay in the beam and
    compete with those that go on. A beam may lose the greedy caption on its way, so that one is searched too, and taken where
    it is better: no score is below greedy's.

    Args:
        model: in evaluation mode.
        memory: what the encoder says of each widget.
        length: words at most, the end included.
        width: 1 is greedy search.
        penalty: the exponent of the length penalty.
    """
    found = _beam(model, memory, length, width, penalty)
    if width == 1:
        return found
    greedy = _beam(model, memory, length, 1, penalty)
    better = greedy.score > found.score
    return Found(torch.where(better[:, None], greedy.words, found.words), torch.where(better, greedy.score, found.score))


def _beam(model: Captioner, memory: Float[Tensor, "k d"], length: int, width: int, penalty: float) -> Found:
    count, device = len(memory), memory.device
    spread = repeat(memory, "k d -> (k w) d", w=width)
    words = torch.full((count, width, 1), START, device=device)
    total = torch.zeros(count, width, device=device)
    total[:, 1:] = -torch.inf  # all entries begin alike: only the first may go on
    lengths = torch.zeros(count, width, device=device)
    ended = torch.zeros(count, width, dtype=torch.bool, device=device)
    for step in range(1, length + 1):
        logits = model.decode(spread, rearrange(words, "k w l -> (k w) l"), last=True)
        chances = rearrange(logits.float().log_softmax(-1), "(k w) 1 v -> k w v", w=width)
        chances[..., [PADDING, UNKNOWN, START]] = -torch.inf  # no words of a caption
        if step == 1:
            chances[..., END] = -torch.inf  # no caption is empty
        # An entry that has ended has one continuation, itself.
        stay = torch.full_like(chances, -torch.inf)
        stay[..., PADDING] = 0.0
        sums = total[..., None] + torch.where(ended[..., None], stay, chances)
        after = torch.where(ended, lengths, float(step))
        ranked = rearrange(sums / _penalty(after, penalty)[..., None], "k w v -> k (w v)")
        best = ranked.topk(width).indices
        entry, word = best // chances.shape[-1], best % chances.shape[-1]
        total = rearrange(sums, "k w v -> k (w v)").gather(1, best)
        words = torch.cat([words.gather(1, repeat(entry, "k w -> k w l", l=words.shape[2])), word[..., None]], -1)
        lengths = after.gather(1, entry)
        ended = ended.gather(1, entry) | (word == END)
        if bool(ended.all()):
            break
    score = total / _penalty(lengths, penalty)
    first = score.argmax(1, keepdim=True)
    chosen = words.gather(1, repeat(first, "k 1 -> k 1 l", l=words.shape[2]))[:, 0, 1:]
    filled = torch.nn.functional.pad(chosen, (0, length - chosen.shape[1]), value=PADDING)
    return Found(filled, score.gather(1, first)[:, 0])


def _penalty(lengths: Float[Tensor, "..."], exponent: float) -> Float[Tensor, "..."]:
    return ((5 + lengths) / 6) ** exponent
