"""What the reader of COCO's layout does with what is odd."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lff.experiments.data.annotated import Category
from lff.experiments.data.coco import coco, frequent
from lff.experiments.problems import Problem
from lff.experiments.tasks.detection.config import tiny
from lff.experiments.tasks.detection.pictures import splits

Change = Callable[[dict[str, Any]], None]
PICTURES = [(7, 40, 30), (3, 20, 50), (12, 30, 30)]  # id, width, height; ids are in no order


def box(image: int, category: int, bbox: list[float], **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": bbox, "area": bbox[2] * bbox[3], "iscrowd": 0, **more}


def content() -> dict[str, Any]:
    return {
        "images": [{"id": i, "file_name": f"{i:012d}.png", "width": w, "height": h} for i, w, h in PICTURES],
        "annotations": [
            {"id": 1, **box(7, 90, [2, 3, 10, 20])},
            {"id": 2, **box(7, 4, [30, 20, 20, 20])},  # over the border
            {"id": 3, **box(3, 4, [5, 5, 0, 10])},  # no area
            {"id": 4, **box(3, 4, [25, 5, 10, 10])},  # outside
            {"id": 5, **box(3, 17, [0, 0, 20, 50], iscrowd=1)},
            {"id": 6, **box(3, 4, [1, 2, 3, 4])},
        ],
        "categories": [{"id": 90, "name": "toothbrush"}, {"id": 4, "name": "aeroplane"}, {"id": 17, "name": "cat"}],
    }


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    def make(change: Change | None = None) -> Path:
        for split in ("train2017", "val2017"):
            (tmp_path / split).mkdir(exist_ok=True)
            for i, width, height in PICTURES:
                Image.new("L", (width, height), i).save(tmp_path / split / f"{i:012d}.png")
            (tmp_path / "annotations").mkdir(exist_ok=True)
            written = content()
            if change:
                change(written)
            (tmp_path / "annotations" / f"instances_{split}.json").write_text(json.dumps(written))
        return tmp_path

    return make


def test_categories_are_numbered_by_their_ids_whatever_the_gaps(made: Callable[..., Path]) -> None:
    pictures = coco(made(), "train")
    assert pictures.categories == (Category(4, "aeroplane"), Category(17, "cat"), Category(90, "toothbrush"))
    assert pictures.ids.tolist() == [3, 7, 12]
    assert pictures.objects(1).labels.tolist() == [2, 0]


def test_boxes_are_cut_off_at_the_border_and_those_without_area_are_left_out(made: Callable[..., Path]) -> None:
    pictures = coco(made(), "val")
    np.testing.assert_array_equal(pictures.objects(1).boxes, [[2, 3, 12, 23], [30, 20, 40, 30]])
    np.testing.assert_array_equal(pictures.objects(0).boxes, [[1, 2, 4, 6]])


def test_the_evaluation_is_given_all_that_the_file_has(made: Callable[..., Path]) -> None:
    truth = coco(made(), "val").truth
    assert [each["bbox"] for each in truth] == [each["bbox"] for each in content()["annotations"]]
    assert [each["iscrowd"] for each in truth] == [0, 0, 0, 0, 1, 0]


def test_a_picture_without_boxes_is_kept(made: Callable[..., Path]) -> None:
    pictures = coco(made(), "train")
    assert len(pictures) == 3
    assert pictures.objects(2).boxes.shape == (0, 4)
    assert pictures.pixels(2).shape == (3, 30, 30)  # grey becomes RGB
    assert (pictures.pixels(2) == 12).all()


def test_frequent_counts_pictures_not_boxes(made: Callable[..., Path]) -> None:
    def many(written: dict[str, Any]) -> None:
        written["annotations"] = (
            [box(7, 4, [0, 0, 5, 5])] * 9 + [box(i, 17, [0, 0, 5, 5]) for i in (7, 3)] + [box(3, 90, [0, 0, 5, 5])]
        )

    assert frequent(made(many), 1) == (Category(17, "cat"),)
    assert frequent(made(many), 2) == (Category(4, "aeroplane"), Category(17, "cat"))
    assert len(frequent(made(many), 0)) == 3
    assert {each["category_id"] for each in coco(made(many), "val", frequent(made(many), 1)).truth} == {17}


def test_frequent_may_count_such_categories_alone_whose_objects_are_large(made: Callable[..., Path]) -> None:
    def some(written: dict[str, Any]) -> None:  # of 40 x 30, 20 x 50 and 30 x 30 pixels
        small = [box(i, 4, [0, 0, 3, 3]) for i in (7, 3, 12)]
        mixed = [box(7, 17, [0, 0, 30, 20]), box(3, 17, [0, 0, 10, 20]), box(12, 17, [0, 0, 3, 3])]  # 0.5, 0.2 and 0.01
        crowd = [box(7, 90, [0, 0, 6, 10]), box(12, 90, [0, 0, 30, 30], iscrowd=1)]  # 0.05, and 1 that does not count
        written["annotations"] = small + mixed + crowd

    root = made(some)
    assert frequent(root, 1) == (Category(4, "aeroplane"),)
    assert frequent(root, 1, 0.2) == (Category(17, "cat"),)
    assert frequent(root, 0, 0.05) == (Category(17, "cat"), Category(90, "toothbrush"))
    with pytest.raises(ValueError, match=r"no category whose objects fill 0\.21 of their pictures"):
        frequent(root, 0, 0.21)


def test_pictures_that_show_none_of_the_categories_can_be_left_out(made: Callable[..., Path]) -> None:
    root = made()
    toothbrush, cat = (Category(90, "toothbrush"),), (Category(17, "cat"),)
    assert coco(root, "train", toothbrush, empty=False).ids.tolist() == [7]
    assert coco(root, "train", toothbrush, empty=False).objects(0).boxes.tolist() == [[2, 3, 12, 23]]
    assert coco(root, "val", cat, empty=False).ids.tolist() == [3]  # a crowd is shown, if not trained on
    assert coco(root, "val", empty=False).ids.tolist() == [3, 7]
    with pytest.raises(ValueError, match="has no picture of dog"):
        coco(root, "val", (Category(18, "dog"),), empty=False)


def test_the_settings_choose_categories_and_pictures_of_both_splits(made: Callable[..., Path]) -> None:
    root = made()
    train, test = splits(replace(tiny(), categories=1, least=0.1, empty=False), root)
    assert train.categories == test.categories == (Category(90, "toothbrush"),)
    assert train.ids.tolist() == test.ids.tolist() == [7]
    assert [len(each) for each in splits(replace(tiny(), categories=1), root)] == [3, 3]
    with pytest.raises(Problem, match=r"--least must be a share of a picture, from 0 to 1, got 5.0"):
        replace(tiny(), least=5.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c: c["annotations"].append({"id": 9, **box(7, 4, [0, 0, 5, 5])} | {"bbox": [0, float("nan"), 5, 5]}),
            "annotation 9",
        ),
        (lambda c: c["annotations"].append({"id": 9, **box(7, 4, [0, 0, 5, 5])} | {"bbox": [0, 5, 5]}), "four finite numbers"),
        (lambda c: c["annotations"].append({"id": 9, **box(8, 4, [0, 0, 5, 5])}), "of image 8, which the file does not list"),
        (lambda c: c["annotations"].append({"id": 9, **box(7, 5, [0, 0, 5, 5])}), "of category 5, which the file does not list"),
        (lambda c: c["images"].append({"id": 1, "file_name": "gone.jpg", "width": 2, "height": 2}), "train2017/gone.jpg"),
        (lambda c: c.pop("images"), "must hold the lists"),
    ],
)
def test_what_is_wrong_is_named_before_training(made: Callable[..., Path], change: Change, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        coco(made(change), "train")


def test_missing_and_damaged_files_are_named(made: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no .*instances_train2017\.json"):
        coco(tmp_path, "train")
    root = made()
    (root / "train2017" / f"{3:012d}.png").write_bytes(b"no picture")
    pictures = coco(root, "train")
    with pytest.raises(ValueError, match=r"cannot read the picture .*000000000003\.png"):
        pictures.pixels(0)
    (root / "annotations" / "instances_val2017.json").write_text("{")
    with pytest.raises(ValueError, match=r"instances_val2017\.json is damaged"):
        coco(root, "val")


def test_a_picture_of_another_size_than_its_json_says_is_refused(made: Callable[..., Path]) -> None:
    def taller(written: dict[str, Any]) -> None:
        written["images"][1]["height"] = 51

    with pytest.raises(ValueError, match=r"must be 20 x 51, as its json says, got 20 x 50"):
        coco(made(taller), "train").pixels(0)
