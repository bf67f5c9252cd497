import json
from pathlib import Path
from typing import Any

import pytest

from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import annotations, source
from lff.experiments.tasks.captioning.screens import Tally, clipped, depth_first

SCREEN: dict[str, Any] = {
    "screen_id": "7",
    "app": "an.app",
    "elements": [
        ["TOOLBAR", "Menu", 0, 0, 999, 99, -1],
        ["PICTOGRAM", "three bars", 0, 10, 99, 89, 0],
        ["IMAGE", "a red car .", 100, 100, 900, 500, -1],
        ["TEXT", "a red car", 120, 400, 400, 450, 2],
        ["TEXT", "For sale", 420, 400, 700, 450, 2],
        ["PICTOGRAM", "a white circle .", 450, 900, 550, 990, -1],
    ],
    "targets": [1, 2],
}


def read(content: dict[str, Any], **changes: Any) -> tuple[Any, Tally]:
    tally = Tally()
    return annotations.screen({**content, **changes}, tally), tally


def test_the_package_holds_what_its_page_says() -> None:
    tally = Tally()
    split = annotations.embedded(tally)
    assert tally.lines() == []
    assert [len(screens) for screens in split] == [1891, 216, 204]
    assert [sum(len(s.targets) for s in screens) for screens in split] == [11_402, 1263, 1373]
    names = [screen.name for screens in split for screen in screens]
    assert len(set(names)) == len(names)


def test_a_target_is_called_by_its_text_which_is_hidden_with_all_that_repeats_it() -> None:
    screen, tally = read(SCREEN)
    assert [element.captions for element in screen.elements] == [(), (("three", "bars"),), (("a", "red", "car"),), (), (), ()]
    # The toolbar's and "For sale" are seen; the targets', its repetition and another icon's description are not.
    assert [element.text for element in screen.elements] == [("menu",), (), (), (), ("for", "sale"), ()]
    assert tally.lines() == []


def test_no_caption_of_the_package_is_to_be_seen_on_its_screen_at_a_target() -> None:
    for screens in annotations.embedded(Tally()):
        for screen in screens:
            assert all(not screen.elements[number].text for number in screen.targets)
            assert all(not element.text for element in screen.elements if element.type in annotations.DESCRIBED)


def test_boxes_are_top_left_bottom_right_from_0_to_99() -> None:
    screen, _ = read(SCREEN)
    assert screen.elements[0].box == (0, 0, 9, 99)
    assert screen.elements[2].box == (9, 9, 49, 89)


def test_places_in_the_tree_are_counted_from_one() -> None:
    screen, _ = read(SCREEN)
    assert [element.dom for element in screen.elements] == [(1, 1, 2), (2, 2, 1), (1, 3, 5), (2, 4, 3), (2, 5, 4), (1, 6, 6)]
    assert depth_first([]) == []


@pytest.mark.parametrize(
    ("changes", "said", "kept"),
    [
        ({"targets": [1, 17]}, "captions of elements that are not on their screen, left out: 1", 1),
        ({"elements": [*SCREEN["elements"][:5], ["PICTOGRAM", " . ", 450, 900, 550, 990, -1]], "targets": [1, 5]}, "empty", 1),
        ({"elements": [["PICTOGRAM", "x", 99, 10, 0, 89, -1], ["IMAGE", "y", 0, 0, 9, 9, -1]], "targets": [0, 1]}, "inverted", 1),
        ({"elements": [["IMAGE", "x", 1100, 10, 1200, 89, -1], ["IMAGE", "y", 0, 0, 9, 9, -1]], "targets": [0, 1]}, "outside", 1),
        ({"elements": [["IMAGE", "x", -50, 10, 2000, 89, -1]], "targets": [0]}, "clipped", 1),
        ({"elements": [["GADGET", "x", 0, 10, 99, 89, -1]], "targets": [0]}, "'GADGET' of screen 7", 1),
    ],
)
def test_what_is_wrong_with_a_screen_is_counted(changes: dict[str, Any], said: str, kept: int) -> None:
    screen, tally = read(SCREEN, **changes)
    assert len(screen.targets) == kept
    (line,) = tally.lines()
    assert said in line


def folder(root: Path, **content: str) -> Path:
    root.mkdir(exist_ok=True)
    for split in ("train", "dev", "test"):
        (root / f"{split}.jsonl").write_text(content.get(split, json.dumps({**SCREEN, "screen_id": split}) + "\n"))
    return root


def test_damaged_lines_are_counted_and_the_others_are_read(tmp_path: Path) -> None:
    good = json.dumps(SCREEN)
    ring = json.dumps({**SCREEN, "elements": [["IMAGE", "x", 0, 0, 9, 9, 0]]})
    root = folder(tmp_path / "data", train=f'{good}\n{{"screen_id"\n[]\n{ring}\n')
    found = source.read(root, pixels=False, own_text=False)
    assert [screen.name for screen in found.split.train] == ["7"]
    (line,) = found.problems
    assert "screens that are no JSON of the right form, left out: 3" in line
    assert "train.jsonl, line 2" in line


def test_a_split_without_captions_or_without_its_file_is_refused(tmp_path: Path) -> None:
    root = folder(tmp_path / "data", dev=json.dumps({**SCREEN, "targets": []}))
    with pytest.raises(Problem, match=r"no screen with captions for dev.*nothing to caption, left out: 1"):
        source.read(root, pixels=False, own_text=False)
    (root / "dev.jsonl").unlink()
    with pytest.raises(Problem, match=r"dev\.jsonl"):
        source.read(root, pixels=False, own_text=False)
    with pytest.raises(ValueError, match="there is no folder"):
        source.read(tmp_path / "nowhere", pixels=False, own_text=False)
    with pytest.raises(Problem, match="--pixels wants screenshots"):
        source.read(None, pixels=True, own_text=False)


def test_only_three_examples_of_a_kind_are_kept() -> None:
    tally = Tally()
    for number in range(1200):
        assert clipped((0.5, 0.0, 0.5, 1.0), tally, f"box {number}") is None
    assert tally.lines() == ["boxes that are empty or inverted, their elements left out: 1,200, for instance box 0; box 1; box 2"]
