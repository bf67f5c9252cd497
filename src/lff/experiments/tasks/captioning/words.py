"""Words: how text is cut into them, the vocabulary, and word vectors of a GloVe file."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lff.experiments.problems import Problem

#: The first entries of every vocabulary, as in the public code.
PADDING, END, UNKNOWN, START = range(4)
SPECIAL = ("<PAD>", "<EOS>", "<UNK>", "<START>")

#: What coco-caption's tokeniser takes out of a caption.
PUNCTUATION = frozenset(
    ['"', "''", "'", "``", "`", "-lrb-", "-rrb-", "-lcb-", "-rcb-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)
_LONGEST = 30  # letters; the public code drops longer words
#: Of a resource id such as "btnPlay_all": its words in camel case or between underscores.
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?=[A-Z]|$)")


def caption_words(text: str) -> tuple[str, ...]:
    """The words of a caption: lower case, cut at spaces, without marks of punctuation that stand alone.

    The captions that are read here have their marks set off by spaces already. Of the 7,994 different ones inside the package
    coco-caption's own tokeniser, a Java program, cuts 9 otherwise ("m&ms", "$20", "couldn 't"), which the tests count.
    """
    return tuple(word for word in text.lower().split() if word not in PUNCTUATION)


def text_words(text: str) -> tuple[str, ...]:
    """The words of what stands on a screen: lower case, runs of ASCII letters and digits of at most 30."""
    kept = text.lower().encode("ascii", "ignore").decode()
    return tuple(word for word in re.findall(r"[a-z0-9]+(?:'[a-z]+)?", kept) if len(word) <= _LONGEST)


def resource_words(identifier: str) -> tuple[str, ...]:
    """The words of a resource id, "com.app:id/btnPlay_all" for instance: btn, play, all."""
    return tuple(word.lower() for word in _CAMEL.findall(identifier.rpartition("/")[2]))


class Vocabulary:
    """Words with their numbers: the special ones, then all others by how often they occur.

    Args:
        words: in the order of their numbers, the special ones first.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]], size: int) -> "Vocabulary":
        """The most frequent words of texts, `size` entries in all; of equally frequent ones the first in the alphabet."""
        counts = Counter(word for text in texts for word in text)
        ranked = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*SPECIAL, *ranked[: size - len(SPECIAL)]])

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, text: Sequence[str], length: int) -> list[int]:
        """The numbers of a text's first words, filled up to `length` with padding; unknown words are UNKNOWN."""
        known = [self._numbers.get(word, UNKNOWN) for word in text[:length]]
        return known + [PADDING] * (length - len(known))

    def caption(self, text: Sequence[str], length: int) -> list[int]:
        """A caption's first known words and END, filled up to `length` with padding; it never asks for UNKNOWN."""
        known = [self._numbers[word] for word in text if word in self._numbers]
        known = [*known[: length - 1], END]
        return known + [PADDING] * (length - len(known))

    def text(self, numbers: Sequence[int]) -> str:
        """The words up to END."""
        ended = list(numbers)[: list(numbers).index(END)] if END in numbers else numbers
        return " ".join(self.words[number] for number in ended if number > START)


def glove(file: Path, vocabulary: Vocabulary) -> Float[Tensor, "words size"]:
    """Vectors of a GloVe text file for a vocabulary: uniform in [0, 0.1] for words without one, zero for padding."""
    found: dict[str, np.ndarray] = {}
    wanted = set(vocabulary.words)
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                word, *values = line.rstrip("\n").split(" ")
                if word in wanted:
                    found[word] = np.array(values, dtype=np.float32)
                    if len(found[word]) != len(next(iter(found.values()))):
                        raise Problem(
                            f"{file}, line {number}, has {len(values)} numbers where others have another number of them"
                        )
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read the word vectors {file}: {error}") from error
    if not found:
        raise Problem(f"{file} has none of the {len(vocabulary)} words; it must be lines of a word and its numbers")
    size = len(next(iter(found.values())))
    table = 0.1 * torch.rand(len(vocabulary), size, generator=torch.Generator().manual_seed(0))
    for number, word in enumerate(vocabulary.words):
        if word in found:
            table[number] = torch.from_numpy(found[word])
    table[PADDING] = 0.0
    return table
