"""COCO's evaluation: of perfect, shifted and random detections, against values by hand and pycocotools."""

import contextlib
import io
import math
from typing import Any

import numpy as np
import pytest

from lff.experiments.tasks.detection.evaluation import KEYS, evaluate, ground_truth, results
from lff.experiments.tasks.detection.scenes import Scenes, scenes


@pytest.fixture(scope="module")
def pictures() -> Scenes:
    return scenes("test", 64)


def perfect(pictures: Scenes, queries: int = 6) -> np.ndarray:
    """Every object found, the other queries far away and unsure."""
    found = np.zeros((len(pictures), queries, 6), np.float32)
    found[..., :4] = [-9, -9, -8, -8]
    for i in range(len(pictures)):
        objects = pictures.objects(i)
        found[i, : len(objects.labels), :4] = objects.boxes
        found[i, : len(objects.labels), 4] = 0.9
        found[i, : len(objects.labels), 5] = objects.labels
    return found


def everyone(pictures: Scenes) -> np.ndarray:
    return np.arange(len(pictures))


def test_perfect_detections_have_an_ap_of_one(pictures: Scenes) -> None:
    scores = evaluate(pictures, everyone(pictures), perfect(pictures))
    assert scores["ap"] == scores["ap50"] == scores["ap75"] == scores["ap_small"] == 1.0
    assert math.isnan(scores["ap_large"])  # there is none to find
    assert set(scores["categories"].values()) == {1.0}


# A box of side s moved by a share d of it has an IoU of (1 - d) / (1 + d): 0.818 at 0.1, and 7 of COCO's 10 thresholds,
# 0.5 to 0.8, are met; 0.667 at 0.2 meets 4 of them, 0.48 at 0.35 none.
@pytest.mark.parametrize(("share", "thresholds", "at_half"), [(0.1, 7, 1.0), (0.2, 4, 1.0), (0.35, 0, 0.0)])
def test_shifted_detections_meet_the_thresholds_that_their_iou_meets(
    pictures: Scenes, share: float, thresholds: int, at_half: float
) -> None:
    moved = perfect(pictures)
    sides = moved[..., 2] - moved[..., 0]
    moved[..., 0] += share * sides
    moved[..., 2] += share * sides
    scores = evaluate(pictures, everyone(pictures), moved)
    assert scores["ap"] == pytest.approx(thresholds / 10, abs=1e-9)
    assert scores["ap50"] == at_half
    assert scores["ap75"] == (1.0 if thresholds >= 6 else 0.0)


def test_a_wrong_class_finds_nothing(pictures: Scenes) -> None:
    wrong = perfect(pictures)
    wrong[..., 5] = (wrong[..., 5] + 1) % 10
    assert evaluate(pictures, everyone(pictures), wrong)["ap50"] < 0.1


def test_enlarging_changes_what_is_small_and_no_iou(pictures: Scenes) -> None:
    found = perfect(pictures)
    found[..., :4] += np.random.default_rng(0).normal(scale=1.5, size=found[..., :4].shape)
    plain, enlarged = (evaluate(pictures, everyone(pictures), found, enlarge) for enlarge in (1.0, 4.0))
    assert plain["ap"] == pytest.approx(enlarged["ap"], abs=1e-12)
    assert math.isnan(plain["ap_large"])
    assert math.isnan(enlarged["ap_small"])
    assert 0 < enlarged["ap_medium"] < 1


def test_outputs_without_a_category_and_numbers_that_are_none_are_left_out(pictures: Scenes) -> None:
    found = perfect(pictures)
    found[:, -1] = [0, 0, 5, 5, 0.99, 40]
    found[:, -2] = [0, np.nan, 5, 5, 0.99, 1]
    assert evaluate(pictures, everyone(pictures), found)["ap"] == 1.0


def test_all_numbers_are_those_of_pycocotools(pictures: Scenes) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    generator = np.random.default_rng(1)
    found = perfect(pictures, 20)
    found[..., :4] += generator.normal(scale=2.0, size=found[..., :4].shape)
    found[:, 8:14] = found[:, :6]  # found twice, a little elsewhere
    found[:, 8:14, :4] += generator.normal(scale=4.0, size=(len(found), 6, 4))
    found[..., 4] = generator.random(found.shape[:2])
    found[..., 5] = np.where(generator.random(found.shape[:2]) < 0.2, generator.integers(10, size=found.shape[:2]), found[..., 5])
    some = np.arange(0, 64, 2)
    scores = evaluate(pictures, some, found[some], 3.0)
    ids = pictures.ids[some]
    with contextlib.redirect_stdout(io.StringIO()):
        truth: Any = COCO()
        truth.dataset = ground_truth(pictures, ids, 3.0)
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(results(pictures, ids, found[some], 3.0)), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    reference = [math.nan if value < 0 else value for value in judge.stats[:6]]
    assert 0.05 < scores["ap"] < 0.95
    np.testing.assert_allclose([scores[key] for key in KEYS], reference, atol=1e-6, rtol=0)
