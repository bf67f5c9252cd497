import json
from pathlib import Path

import pytest
import widget_folder

from lff.experiments.problems import Problem
from lff.experiments.tasks.captioning import source, widgets
from lff.experiments.tasks.captioning.screens import Tally


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return widget_folder.make(tmp_path / "data")


def test_the_public_layout_is_read(root: Path) -> None:
    found = source.read(root, pixels=True, own_text=False)
    assert [[screen.name for screen in screens] for screens in found.split] == [["100", "103"], ["101"], ["102"]]
    frame, button, bar, icon = found.split.train[0].elements
    assert [e.name for e in (frame, button, bar, icon)] == ["0", "0.0", "0.2", "0.2.0"]  # a null child keeps its number
    assert [e.type for e in (frame, button, bar, icon)] == ["VIEW", "BUTTON", "UNKNOWN", "IMAGEVIEW"]
    assert icon.captions == (("share", "this"), ("share", "with", "friends"))
    assert button.captions == (("play", "the", "song"),)
    assert icon.resource == ("btn", "share", "all")
    assert (bar.clickable, icon.clickable) == (False, True)
    assert [e.dom for e in (frame, button, bar, icon)] == [(1, 1, 4), (2, 2, 1), (2, 3, 3), (3, 4, 2)]
    # x over 1440 and y over 2560, times 99, cut off; (top, left, bottom, right).
    assert icon.box == (0, 74, 9, 99)
    assert button.box == (49, 0, 99, 49)


def test_a_targets_own_text_is_hidden_unless_asked_for(root: Path) -> None:
    hidden = source.read(root, pixels=False, own_text=False).split.train[0].elements[1]
    shown = source.read(root, pixels=False, own_text=True).split.train[0].elements[1]
    assert (hidden.text, shown.text) == ((), ("play", "now"))


def test_widgets_are_cut_out_of_the_screenshot(root: Path) -> None:
    pictures = source.read(root, pixels=True, own_text=False).pictures
    assert [tuple(each.shape) for each in pictures] == [(4, 64, 64), (2, 64, 64), (2, 64, 64)]
    button, icon = pictures[1].float()
    assert icon[4:-4, 4:-4].mean() > 250  # the icon is white, all else black
    assert button.mean() < 5


def test_what_was_read_is_kept_until_a_file_changes(root: Path, tmp_path: Path) -> None:
    def read() -> source.Source:
        return source.read(root, pixels=True, own_text=True, cache=tmp_path / "cache")

    first = read()
    kept = list((tmp_path / "cache").glob("*.pt"))
    again = read()
    assert again.split == first.split
    assert again.problems == first.problems
    assert all((a == b).all() for a, b in zip(again.pictures, first.pictures, strict=True))
    assert list((tmp_path / "cache").glob("*.pt")) == kept
    (root / "widget_captions.csv").write_text("screenId,nodeId,captions\n100,0.0,go\n101,0.0,go\n102,0.0,go\n")
    assert [e.captions for e in read().split.train[0].elements] == [(), (("go",),), (), ()]


def test_everything_that_is_left_out_is_counted_once_with_examples(root: Path) -> None:
    content = widget_folder.hierarchy()
    content["activity"]["root"]["children"][0]["bounds"] = [720, 1280, 0, 2560]
    content["activity"]["root"]["children"][2]["bounds"] = [-10, 0, 1500, 256]
    (root / "combined" / "103.json").write_text(json.dumps(content))
    (root / "combined" / "104.json").write_text("{")
    (root / "combined" / "105.json").write_text('{"activity": null}')
    (root / "combined" / "107.json").write_text(json.dumps(widget_folder.hierarchy()))
    with (root / "widget_captions.csv").open("a") as file:
        file.write("100,0.9.9,gone\n104,0.0,x\n105,0.0,x\n106,0.0,x\n107,0.0,x\n100,0.2,||\n")
    with (root / "split" / "train.txt").open("a") as file:
        file.write("104\n105\n106\n107\n999\n")
    lines = source.read(root, pixels=True, own_text=False).problems
    for said in (
        "boxes that are empty or inverted, their elements left out: 1, for instance screen 103, node 0.0",
        "boxes that leave the screen, clipped to it: 1, for instance screen 103, node 0.2",
        "captions of elements that are not on their screen, left out: 2",  # 0.9.9 of 100, and 0.0 of 103
        "empty captions, left out: 7",  # one for each icon, three of the line without any
        "view hierarchies that are damaged, left out: 2",
        "screens without a view hierarchy, left out: 1",
        "screens without a screenshot, left out: 1",
        "screens without captions, left out: 1, for instance screen 999 of train",
        "elements of unknown type, taken as UNKNOWN: 5",
    ):
        assert any(line.startswith(said) for line in lines), (said, lines)
    assert len(lines) == 9


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("widget_captions.csv", "screen,node\n1,2\n", "must begin with the columns screenId, nodeId and captions"),
        ("split/dev.txt", None, "cannot read"),
        ("split/dev.txt", "", "no screen with captions for dev"),
        ("combined/102.jpg", "no picture", "cannot read the screenshot"),
    ],
)
def test_what_makes_a_data_set_useless_is_named(root: Path, file: str, text: str | None, said: str) -> None:
    (root / file).unlink()
    if text is not None:
        (root / file).write_text(text)
    with pytest.raises((Problem, ValueError), match=said):
        source.read(root, pixels=True, own_text=False)


def test_at_most_four_captions_of_a_widget_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "widget_captions.csv"
    file.write_text("screenId,nodeId,captions\n1,0,a|b|c|d|e\n")
    assert widgets.read_captions(file, Tally())["1"]["0"] == (("a",), ("b",), ("c",), ("d",))
