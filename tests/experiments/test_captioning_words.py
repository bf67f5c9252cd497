import shutil
from pathlib import Path

import pytest
import torch

from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import annotations
from lff.experiments.tasks.captioning.screens import Tally
from lff.experiments.tasks.captioning.words import (
    END,
    PADDING,
    UNKNOWN,
    Vocabulary,
    caption_words,
    glove,
    resource_words,
    text_words,
)


def test_captions_lose_case_and_marks_that_stand_alone() -> None:
    assert caption_words("A white `` X '' , on an eagle 's head .") == ("a", "white", "x", "on", "an", "eagle", "'s", "head")
    assert caption_words(" . ") == ()


def test_texts_are_runs_of_ascii_letters_and_digits() -> None:
    assert text_words("Don't – 36°C, café/Menu") == ("don't", "36c", "caf", "menu")
    assert text_words("x" * 31) == ()


@pytest.mark.parametrize(
    ("identifier", "words"),
    [("com.app:id/btnPlay_all", ("btn", "play", "all")), ("android:id/content", ("content",)), ("", ())],
)
def test_resource_ids_are_cut_at_capitals_and_underscores(identifier: str, words: tuple[str, ...]) -> None:
    assert resource_words(identifier) == words


def test_the_most_frequent_words_are_known_and_a_caption_never_asks_for_another() -> None:
    vocabulary = Vocabulary.of([("b", "a"), ("b", "c")], size=6)
    assert vocabulary.words[4:] == ("b", "a")
    assert vocabulary.numbers(("c", "b"), 3) == [UNKNOWN, 4, PADDING]
    assert vocabulary.caption(("c", "b"), 4) == [4, END, PADDING, PADDING]
    assert vocabulary.caption(("b", "a", "b"), 3) == [4, 5, END]
    assert vocabulary.text([4, 5, END, 4]) == "b a"


def test_glove_gives_its_words_their_vectors_and_padding_none(tmp_path: Path) -> None:
    file = tmp_path / "glove.txt"
    file.write_text("b 1.0 2.0\nelse 3.0 4.0\n")
    table = glove(file, Vocabulary.of([("b", "a")], size=6))
    assert table.shape == (6, 2)
    assert table[5].tolist() == [1.0, 2.0]
    assert table[PADDING].tolist() == [0.0, 0.0]
    assert bool(((table[4] > 0) & (table[4] < 0.1)).all())
    assert torch.equal(table, glove(file, Vocabulary.of([("b", "a")], size=6)))


@pytest.mark.parametrize(
    ("text", "said"), [("b 1.0 x\n", "cannot read"), ("z 1.0\n", "none of the 6 words"), (None, "cannot read")]
)
def test_a_damaged_file_of_vectors_is_named(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "glove.txt"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Problem, match=said) as error:
        glove(file, Vocabulary.of([("b", "a")], size=6))
    assert str(file) in str(error.value)


@pytest.mark.skipif(shutil.which("java") is None, reason="coco-caption's tokeniser needs a Java runtime")
def test_captions_are_cut_as_coco_caption_cuts_them_but_for_nine() -> None:
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    split = annotations.embedded(Tally())
    words = {c for screens in split for screen in screens for e in screen.elements for c in e.captions}
    ours = sorted(" ".join(each) for each in words)
    theirs = PTBTokenizer().tokenize({number: [{"caption": text}] for number, text in enumerate(ours)})
    otherwise = [text for number, text in enumerate(ours) if theirs[number] != [text]]
    assert len(ours) > 7000
    assert len(otherwise) <= 9, otherwise
