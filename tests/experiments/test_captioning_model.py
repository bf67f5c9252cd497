from dataclasses import replace

import pytest
import torch

from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import model as models
from lff.experiments.tasks.captioning.config import CaptioningConfig, paper, tiny
from lff.experiments.tasks.captioning.screens import Element, Screen
from lff.experiments.tasks.captioning.tensors import Batch, Screens
from lff.experiments.tasks.captioning.words import Vocabulary

CPU = torch.device("cpu")
WORDS = Vocabulary.of([tuple("abcdefgh")], size=12)
CONFIG = replace(tiny(), pixels=True, resource=True, clickable=True, dom=True, layers=2, dropout=0.2)


def screen(name: str, count: int) -> Screen:
    """Elements of all kinds, the first and the last of them to be captioned."""
    letters = "abcdefgh"

    def element(i: int) -> Element:
        captions = ((letters[i % 8], letters[count % 8]),) if i in (0, count - 1) else ()
        sides = (0.01 * i, 0.02 * i, 0.01 * i + 0.3, 0.02 * i + 0.2)
        return Element(("A", "B")[i % 2], sides, (letters[i % 5],), (letters[i % 3],), bool(i % 2), (1, i + 1, i + 1), captions)

    return Screen(name, tuple(element(i) for i in range(count)))


def screens(*counts: int) -> Screens:
    made = [screen(str(count), count) for count in counts]
    pictures = torch.randint(0, 256, (sum(len(s.targets) for s in made), 64, 64), dtype=torch.uint8)
    return Screens(made, WORDS, ("A", "B"), pictures, text_length=3, caption_length=5)


def build(method: str = "Learnable-Fourier+MLP-2/2", config: CaptioningConfig = CONFIG) -> models.Captioner:
    return models.build(config, parse(method), len(WORDS), None)


def count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_papers_model_has_the_parameters_of_the_public_code() -> None:
    model = models.build(paper(), parse("Embed-4D"), 10_000, torch.zeros(10_000, 300))
    parts = {
        "pixels": 787_584,
        "position": 51_200,
        "join": 98_432,
        "combine": 49_280,
        "say": 1_290_000,
        "dom": 192_000,
        "words": 38_528,
    }
    assert {name: count(getattr(model, name)) for name in parts} == parts
    assert count(model.encoder) + count(model.encoded) == 1_186_816
    assert count(model.decoder) + count(model.decoded) == 1_581_568
    assert count(model) == 5_288_464


def test_a_batch_holds_every_widget_of_its_screens_at_its_place() -> None:
    data = screens(3, 6, 2)
    batch = data.batch(torch.tensor([2, 1]), CPU)
    assert batch.there.sum(1).tolist() == [2, 6]
    assert batch.at.tolist() == [0, 1, 6, 11]
    assert batch.captions[:, :2].tolist() == [[4, 6], [5, 6], [4, 10], [9, 10]]
    assert batch.types[0].tolist() == [1, 2, 0, 0, 0, 0]
    assert batch.boxes[1, 1].tolist() == [0.0, 1.0, 30.0, 21.0]
    assert batch.pixels is not None
    alone = data.batch(torch.tensor([1]), CPU).pixels
    assert alone is not None
    assert torch.equal(batch.pixels[2:], alone)


def test_a_key_decides_which_of_several_captions_is_asked_for() -> None:
    element = Element("A", (0.0, 0.0, 0.5, 0.5), captions=(("a",), ("b",), ("c",)))
    data = Screens([Screen("x", (element,))], WORDS, ("A",), text_length=2, caption_length=3)
    asked = [int(data.batch(torch.tensor([0]), CPU, torch.tensor([key])).captions[0, 0]) for key in (0, 1, 2, 3, -1)]
    assert asked[:4] == [4, 5, 6, 4]
    assert set(asked) == {4, 5, 6}
    pair = Screens([Screen("x", (element, element))], WORDS, ("A",), text_length=2, caption_length=3)
    both = pair.batch(torch.tensor([0]), CPU, torch.tensor([0])).captions[:, 0]
    assert both[0] != both[1]  # widgets of one screen are drawn for each by itself


def test_padding_changes_nothing() -> None:
    data, model = screens(3, 9), build().eval()
    alone = model.encode(data.batch(torch.tensor([0]), CPU))
    padded = model.encode(data.batch(torch.tensor([0, 1]), CPU))[:2]
    torch.testing.assert_close(padded, alone, rtol=1e-5, atol=1e-6)
    # And whatever stands in the padding.
    batch = data.batch(torch.tensor([0, 1]), CPU)
    gone = ~batch.there[0]
    batch.types[0, gone], batch.text[0, gone], batch.boxes[0, gone] = 2, 5, 50.0
    torch.testing.assert_close(model.encode(batch)[:2], alone, rtol=1e-5, atol=1e-6)


def test_another_element_of_the_screen_changes_a_widgets_context() -> None:
    model, batch = build().eval(), screens(4).batch(torch.tensor([0]), CPU)
    before = model.encode(batch)
    batch.boxes[0, 1] = 90.0
    assert not torch.allclose(model.encode(batch), before, atol=1e-4)


def test_the_decoder_is_causal() -> None:
    model, batch = build().eval(), screens(4, 4).batch(torch.tensor([0, 1]), CPU)
    memory = model.encode(batch)
    words = torch.randint(4, 12, (4, 5))
    for place in range(1, 5):
        other = words.clone()
        other[:, place:] = 4 + (other[:, place:] - 3) % 8
        one, two = model.decode(memory, words), model.decode(memory, other)
        torch.testing.assert_close(one[:, :place], two[:, :place], rtol=1e-5, atol=1e-5)
        assert not torch.allclose(one[:, place], two[:, place], atol=1e-3)
    torch.testing.assert_close(model.decode(memory, words, last=True), model.decode(memory, words)[:, -1:])


def test_a_text_is_the_largest_of_its_words_and_zero_without_any() -> None:
    words = build().words
    pooled = words.pooled(torch.tensor([[[4, 6, 0], [2, 0, 0]]]))
    torch.testing.assert_close(pooled[0, 0], words(torch.tensor([4, 6])).amax(0))
    assert not pooled[0, 1].any()


@pytest.mark.parametrize("part", ["pixels", "resource", "clickable", "dom"])
def test_a_part_that_is_off_is_not_there_and_what_is_on_is_read(part: str) -> None:
    batch = screens(4).batch(torch.tensor([0]), CPU)
    changed: dict[str, Batch] = {
        "pixels": batch._replace(pixels=255 - batch.pixels if batch.pixels is not None else None),
        "resource": batch._replace(resource=(batch.resource + 1) % 12),
        "clickable": batch._replace(clickable=1 - batch.clickable),
        "dom": batch._replace(dom=batch.dom + 1),
    }
    with_it, without = build().eval(), build(config=replace(CONFIG, **{part: False})).eval()
    assert not torch.allclose(with_it.encode(changed[part]), with_it.encode(batch), atol=1e-4)
    assert torch.equal(without.encode(changed[part]), without.encode(batch))
    assert count(without) < count(with_it)


def test_the_mlp_alone_is_asked_in_units_of_the_screen() -> None:
    assert build("MLP").unit == pytest.approx(1 / 99)
    assert build("MLP(normalize=False)").unit == 1.0
    assert build("Sine-4D").unit == 1.0


def test_an_option_that_a_method_does_not_have_is_refused() -> None:
    with pytest.raises(Problem, match=r"Sine-4D\(hidden=3\) cannot be made"):
        build("Sine-4D(hidden=3)")


@pytest.mark.parametrize(("method", "features"), [("1/4", 32), ("2/2", 16), ("4/1", 8)])
def test_hidden_units_and_features_are_the_width_over_the_groups(method: str, features: int) -> None:
    encoding = build(f"Learnable-Fourier+MLP-{method}").position
    sizes = {name: tuple(p.shape) for name, p in encoding.named_parameters()}
    assert sorted(sizes.values()) == sorted(
        [(features // 2, features // 8), (features, features), (features,), (features, features), (features,)]
    )
    assert [m.p for m in encoding.modules() if isinstance(m, torch.nn.Dropout)] == [CONFIG.dropout]
