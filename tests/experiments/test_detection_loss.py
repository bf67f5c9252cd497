"""The matching and the losses, by hand, by brute force, and against transformers' own."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from lff.experiments.tasks.detection.batch import padded
from lff.experiments.tasks.detection.boxes import centred, corners, generalised_iou
from lff.experiments.tasks.detection.loss import Loss, Targets
from lff.experiments.tasks.detection.matching import NOBODY, assign, costs

CLASSES = 5
loss = Loss()


def objects(counts: list[int]) -> tuple[list[Tensor], list[Tensor]]:
    """Random corners inside of the image, and labels."""
    boxes = [torch.rand(n, 2, 2).sort(dim=1).values.reshape(n, 4) for n in counts]
    return boxes, [torch.randint(CLASSES, (n,)) for n in counts]


def predictions(layers: int, batch: int, queries: int) -> tuple[Tensor, Tensor]:
    return torch.randn(layers, batch, queries, CLASSES + 1), torch.rand(layers, batch, queries, 4) * 0.5 + 0.2


def test_boxes_are_the_same_after_two_conversions() -> None:
    boxes = torch.rand(7, 4)
    torch.testing.assert_close(centred(corners(boxes)), boxes)
    assert corners(torch.tensor([0.5, 0.4, 0.2, 0.6])).tolist() == pytest.approx([0.4, 0.1, 0.6, 0.7])


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ([0, 0, 2, 2], 1.0),
        ([1, 0, 3, 2], 2 / 6),  # a third, and the box around both is filled
        ([1, 1, 3, 3], 1 / 7 - 2 / 9),
        ([3, 0, 5, 2], -2 / 10),  # a gap of 2 in 10
        ([1, 1, 1, 1], 0.0),  # no area
    ],
)
def test_generalised_iou_by_hand(other: list[float], wanted: float) -> None:
    found = generalised_iou(torch.tensor([0.0, 0.0, 2.0, 2.0]), torch.tensor(other).float())
    assert found.item() == pytest.approx(wanted, abs=1e-6)


def test_two_boxes_without_area_are_no_error() -> None:
    point = torch.full((4,), 0.5, requires_grad=True)
    overlap = generalised_iou(point, torch.full((4,), 0.5))
    overlap.backward()
    assert torch.isfinite(overlap)
    assert torch.isfinite(point.grad).all()


def test_the_assignment_is_the_cheapest_of_all() -> None:
    cost = torch.randn(2, 3, 5, 4)
    counts = (4, 2, 0)
    found = assign(cost, torch.arange(4) < torch.tensor(counts)[:, None])
    for layer, (image, count) in itertools.product(range(2), enumerate(counts)):
        ways = itertools.permutations(range(5), count)
        best = min(ways, key=lambda way: sum(cost[layer, image, q, t].item() for t, q in enumerate(way)))
        assert found[layer, image, :count].tolist() == list(best)
        assert (found[layer, image, count:] == NOBODY).all()


def test_more_objects_than_queries_leave_some_without() -> None:
    found = assign(torch.rand(1, 1, 3, 5), torch.ones(1, 5, dtype=torch.bool))[0, 0]
    assert sorted(found.tolist()) == [NOBODY, NOBODY, 0, 1, 2]


def test_costs_that_are_not_finite_do_not_stop_the_matching() -> None:
    cost = torch.rand(1, 1, 3, 2)
    cost[0, 0, 1] = float("nan")
    cost[0, 0, 0, 0] = float("inf")
    assert assign(cost, torch.ones(1, 2, dtype=torch.bool))[0, 0].tolist() == [2, 0]


def test_objects_may_stand_anywhere_among_padding() -> None:
    cost = torch.rand(2, 1, 4, 3)
    real = torch.tensor([[False, True, True]])
    found = assign(cost, real)
    assert (found[..., 0] == NOBODY).all()
    assert torch.equal(found[..., 1:], assign(cost[..., 1:], real[:, 1:]))


@pytest.mark.parametrize("counts", [[3, 1], [0, 4], [2, 0, 6]])
def test_the_loss_is_that_of_transformers(counts: list[int]) -> None:
    from transformers import DetrConfig
    from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

    boxes, labels = objects(counts)
    logits, predicted = predictions(3, len(counts), 7)
    config = DetrConfig(auxiliary_loss=True, num_labels=CLASSES, num_queries=7)
    wanted = [{"class_labels": each, "boxes": centred(box)} for box, each in zip(boxes, labels, strict=True)]
    reference, _, _ = ForObjectDetectionLoss(logits[-1], wanted, logits.device, predicted[-1], config, logits, predicted)
    torch.testing.assert_close(loss(logits, predicted, padded(boxes, labels)), reference)


@pytest.mark.compile
def test_compiled_it_is_the_same_loss_and_batches_of_one_shape_compile_it_once() -> None:
    compiled = Loss(compiled=True)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(error_on_recompile=True):
        for counts in ([3, 1], [0, 4]):
            logits, predicted = (each.requires_grad_() for each in predictions(3, 2, 7))
            targets = padded(*objects(counts), room=4)
            assert targets.boxes.shape == (2, 4, 4)
            found = [each(logits, predicted, targets) for each in (compiled, loss)]
            torch.testing.assert_close(*found)
            ours, plain = (torch.autograd.grad(each, (logits, predicted)) for each in found)
            torch.testing.assert_close(ours, plain)


def test_a_batch_without_objects_has_a_loss_and_gradients() -> None:
    logits, predicted = (each.requires_grad_() for each in predictions(2, 3, 4))
    total = loss(logits, predicted, padded(*objects([0, 0, 0])))
    total.backward()
    assert torch.isfinite(total)
    assert logits.grad.abs().sum() > 0
    assert (predicted.grad == 0).all()


def test_the_order_of_objects_and_queries_changes_nothing() -> None:
    boxes, labels = objects([4, 2])
    logits, predicted = predictions(2, 2, 6)
    order, turned = torch.randperm(6), torch.tensor([2, 0, 3, 1])
    before = loss(logits, predicted, padded(boxes, labels))
    after = loss(
        logits[:, :, order], predicted[:, :, order], padded([boxes[0][turned], boxes[1]], [labels[0][turned], labels[1]])
    )
    torch.testing.assert_close(before, after)


def test_perfect_predictions_have_no_loss() -> None:
    boxes, labels = objects([3])
    logits = torch.full((1, 1, 5, CLASSES + 1), -20.0)
    logits[..., CLASSES] = 20.0
    predicted = torch.rand(1, 1, 5, 4)
    for query, (box, label) in enumerate(zip(boxes[0], labels[0], strict=True)):
        logits[0, 0, query + 1] = -20.0
        logits[0, 0, query + 1, label] = 20.0
        predicted[0, 0, query + 1] = centred(box)
    assert loss(logits, predicted, padded(boxes, labels)).item() < 1e-4


def test_padding_is_never_an_object() -> None:
    boxes, labels = objects([1, 5])
    targets = padded(boxes, labels)
    assert targets.real.sum(1).tolist() == [1, 5]
    logits, predicted = predictions(1, 2, 6)
    garbage = Targets(
        torch.where(targets.real, targets.labels, 3),
        torch.where(targets.real[..., None], targets.boxes, torch.tensor(0.9)),
        targets.real,
    )
    torch.testing.assert_close(loss(logits, predicted, garbage), loss(logits, predicted, targets))


def test_costs_are_weighted_as_in_detr() -> None:
    logits, predicted = torch.zeros(1, 1, 1, 4), torch.tensor([[[[0.5, 0.5, 0.2, 0.2]]]])
    wanted = torch.tensor([[[0.6, 0.5, 0.2, 0.2]]])
    found = costs(logits, predicted, torch.tensor([[1]]), wanted).item()
    # The boxes share half of each and fill what is around both: an IoU of 1/3.
    assert found == pytest.approx(5 * 0.1 - 1 / 4 - 2 / 3, abs=1e-5)
    assert np.isfinite(found)
