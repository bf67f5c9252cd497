"""COCO's own evaluation of boxes, by faster-coco-eval, whose twelve numbers are those of pycocotools."""

import contextlib
import io
import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from lff.experiments.data.annotated import Annotated

KEYS = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")  # the first six of COCO's summary


def evaluate(
    pictures: Annotated,
    numbers: Int64[np.ndarray, " judged"],
    found: Float[np.ndarray, "judged queries 6"],
    enlarge: float = 1.0,
) -> dict[str, Any]:
    """Average precision over IoUs from 0.5 to 0.95, at 0.5, at 0.75, and of small, medium and large objects.

    nan where there is no object of a kind. "categories" has the AP at 0.5 of each, by name.

    Args:
        pictures: with what is to be found.
        numbers: which of them were looked at.
        found: x1, y1, x2, y2 in pixels, score and label of every query.
        enlarge: factor on all lengths. IoUs are the same, but what counts as small (32^2 pixels) or medium (96^2) is not.
    """
    from faster_coco_eval import COCO, COCOeval_faster  # type: ignore[import-untyped]

    ids = pictures.ids[numbers]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(ground_truth(pictures, ids, enlarge))
        judge = COCOeval_faster(truth, truth.loadRes(results(pictures, ids, found, enlarge)), "bbox", print_function=_nothing)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    scores = {key: _score(value) for key, value in zip(KEYS, judge.stats, strict=False)}
    at_half = judge.eval["precision"][0, :, :, 0, -1]  # by recall and category, of all sizes, with all detections
    each = {category.name: _mean(at_half[:, place]) for place, category in enumerate(pictures.categories)}
    return {**scores, "categories": each}


def ground_truth(pictures: Annotated, ids: Int64[np.ndarray, " judged"], enlarge: float = 1.0) -> dict[str, Any]:
    """COCO's format, of some pictures."""
    wanted = set(ids.tolist())
    annotations = [
        each | {"id": number, "bbox": [enlarge * side for side in each["bbox"]], "area": enlarge**2 * each["area"]}
        for number, each in enumerate((each for each in pictures.truth if each["image_id"] in wanted), start=1)
    ]
    categories = [{"id": category.id, "name": category.name} for category in pictures.categories]
    return {"images": [{"id": number} for number in ids.tolist()], "annotations": annotations, "categories": categories}


def results(
    pictures: Annotated, ids: Int64[np.ndarray, " judged"], found: Float[np.ndarray, "judged queries 6"], enlarge: float = 1.0
) -> Float[np.ndarray, "detections 7"]:
    """Rows of image id, x, y, width, height, score and category id."""
    flat = found.reshape(-1, 6).astype(np.float64)
    owner = np.repeat(ids, found.shape[1]).astype(np.float64)
    own = np.array([category.id for category in pictures.categories], np.float64)
    # Of a head with more outputs than there are categories, those beyond find nothing.
    real = (flat[:, 5] < len(own)) & np.isfinite(flat).all(-1)
    flat, owner = flat[real], owner[real]
    sides = flat[:, 2:4] - flat[:, :2]
    boxes = np.concatenate([flat[:, :2], sides], axis=1) * enlarge
    return np.column_stack([owner, boxes, flat[:, 4], own[flat[:, 5].astype(int)]])


def _score(value: float) -> float:
    """COCO says -1 where there is nothing to find."""
    return math.nan if value < 0 else float(value)


def _mean(precisions: np.ndarray) -> float:
    there = precisions[precisions > -1]
    return float(there.mean()) if len(there) else math.nan


def _nothing(*words: object) -> None:
    pass
