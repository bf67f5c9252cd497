"""The metrics are the published ones. Their own example, coco-caption's, needs COCO's annotations, which are not in any package:
so each is held to what coco-caption's whole pipeline, its tokeniser included, gives on captions of the package."""

import math
import shutil

import pytest

from lff.experiments.tasks.captioning import annotations, metrics, paper
from lff.experiments.tasks.captioning.screens import Tally

JAVA = pytest.mark.skipif(shutil.which("java") is None, reason="METEOR and the tokeniser need a Java runtime")


@pytest.fixture(scope="module")
def corpus() -> tuple[list[str], list[list[str]]]:
    """Two references of each of 60 widgets, and something near them that was said."""
    split = annotations.embedded(Tally())
    captions = [" ".join(s.elements[n].captions[0]) for s in split.test for n in s.targets if s.elements[n].captions][:120]
    references = [[captions[i], captions[i + 60]] for i in range(60)]
    said = [" ".join(captions[i].split()[::2] + captions[(7 * i) % 120].split()[:3]) for i in range(60)]
    return said, references


@JAVA
def test_bleu_rouge_and_cider_are_those_of_coco_caption(corpus: tuple[list[str], list[list[str]]]) -> None:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    said, references = corpus
    wanted = PTBTokenizer().tokenize({i: [{"caption": text} for text in each] for i, each in enumerate(references)})
    found = PTBTokenizer().tokenize({i: [{"caption": text}] for i, text in enumerate(said)})
    bleu = Bleu(4).compute_score(wanted, found, verbose=0)[0]
    theirs = {"bleu1": bleu[0], "bleu2": bleu[1], "rouge": Rouge().compute_score(wanted, found)[0]}
    assert metrics.scores(said, references) == pytest.approx(theirs, abs=1e-6)
    assert metrics.cider(said, references) == pytest.approx(Cider().compute_score(wanted, found)[1], abs=1e-6)
    assert 0.2 < theirs["bleu1"] < 0.9


def test_bleu_and_rouge_of_a_pair_worked_out_by_hand() -> None:
    found = metrics.scores(["the red icon"], [["the red round icon"]])
    short = math.exp(1 - 4 / 3)  # the brevity penalty of three words for four
    assert found["bleu1"] == pytest.approx(short, abs=1e-6)
    assert found["bleu2"] == pytest.approx(short * math.sqrt(1 * 1 / 2), abs=1e-6)
    precision, recall, beta = 1.0, 3 / 4, 1.2
    assert found["rouge"] == pytest.approx((1 + beta**2) * precision * recall / (recall + beta**2 * precision), abs=1e-6)


def test_cider_of_words_said_as_they_stand_is_ten_and_of_others_zero() -> None:
    references = [["a b c d"], ["e f g h"], ["i j k l"]]
    each = metrics.cider(["a b c d", "x y z w", "i j k l"], references)
    assert each == pytest.approx([10.0, 0.0, 10.0], abs=1e-9)


@JAVA
@pytest.mark.filterwarnings("default")
def test_meteor_is_that_of_coco_caption_and_its_process_ends(corpus: tuple[list[str], list[list[str]]]) -> None:
    from pycocoevalcap.meteor.meteor import Meteor

    said, references = corpus
    with metrics.Meteor() as meteor:
        ours, exact = meteor(said, references), meteor(["a red icon"], [["a red icon"]])
        process = meteor._published.meteor_p
    assert process.poll() is not None
    published = Meteor()
    theirs, _ = published.compute_score(dict(enumerate(references)), {i: [s] for i, s in enumerate(said)})
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert 0.1 < ours < exact <= 1.0


@pytest.mark.skipif("spice" in metrics.without(), reason=metrics.without().get("spice", ""))
def test_spice_of_words_said_as_they_stand_is_one() -> None:
    assert metrics.spice(["a red icon"], [["a red icon"]]) == pytest.approx(1.0)


def test_without_java_both_programs_are_named_with_what_would_enable_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    said = metrics.without()
    assert set(said) == {"meteor", "spice"}
    assert all("apt-get install default-jre-headless" in line and "lff score FOLDER" in line for line in said.values())


def test_as_many_captions_as_widgets_are_wanted() -> None:
    with pytest.raises(ValueError, match="as many captions as widgets are wanted, 2, got 1"):
        metrics.scores(["a"], [["a"], ["b"]])


def test_the_papers_cider_is_the_mean_over_its_seen_and_unseen_widgets() -> None:
    for method in ("Embed-4D", "Sine-4D"):
        row = paper.TABLE[method]
        mean = (1867 * row["cider_seen"] + 2692 * row["cider_unseen"]) / 4559
        assert mean == pytest.approx(row["cider"], abs=0.0015)
