"""Augmentation, padding and kept features: boxes stay where the objects are, whatever is done to a picture."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from einops import rearrange
from safetensors.torch import save_file
from torch import Tensor

from lff.experiments.data.annotated import Annotated, Objects
from lff.experiments.problems import Problem
from lff.experiments.task import Request
from lff.experiments.tasks.detection import features, model
from lff.experiments.tasks.detection.augment import Recipe, augmented, fitted, resized
from lff.experiments.tasks.detection.batch import Batch, Sample, collate, normalised
from lff.experiments.tasks.detection.boxes import corners
from lff.experiments.tasks.detection.config import DetectionConfig, paper, tiny
from lff.experiments.tasks.detection.kept import Kept
from lff.experiments.tasks.detection.pictures import Augmented, Streamed
from lff.experiments.tasks.detection.scenes import SIDE, scenes

CPU = torch.device("cpu")
WHOLE = Recipe((48, 64, 80), 120, 80, crop=True, flip=True)


def rectangle() -> tuple[np.ndarray, Objects]:
    """A bright rectangle on black, and its box."""
    pixels = np.zeros((3, 60, 90), np.uint8)
    pixels[:, 20:40, 30:75] = 255
    return pixels, Objects(np.array([[30, 20, 75, 40]], np.float32), np.array([4]))


def test_the_box_is_around_the_object_after_any_augmentation() -> None:
    seen = set()
    for key in range(40):
        sample = augmented(*rectangle(), WHOLE, key)
        bright = (sample.pixels[0] > 127).nonzero()
        if not len(bright):  # cut out beside it
            continue
        (top, left), (bottom, right) = bright.amin(0).tolist(), (bright.amax(0) + 1).tolist()
        assert sample.labels.tolist() == [4]
        np.testing.assert_allclose(sample.boxes[0], [left, top, right, bottom], atol=1.6)
        seen.add(tuple(sample.pixels.shape[1:]))
    assert len(seen) > 6  # sizes and parts


def test_an_augmentation_is_decided_by_its_key_alone() -> None:
    torch.manual_seed(0)
    one = augmented(*rectangle(), WHOLE, 5)
    torch.manual_seed(1)
    np.random.seed(3)
    again, other = augmented(*rectangle(), WHOLE, 5), augmented(*rectangle(), WHOLE, 6)
    assert torch.equal(one.pixels, again.pixels)
    assert torch.equal(one.boxes, again.boxes)
    assert one.pixels.shape != other.pixels.shape or not torch.equal(one.pixels, other.pixels)


def test_objects_outside_of_a_part_are_left_out_with_their_labels() -> None:
    pixels = np.zeros((3, 64, 64), np.uint8)
    objects = Objects(np.array([[0, 0, 6, 6], [58, 58, 64, 64]], np.float32), np.array([1, 2]))
    counts = {tuple(augmented(pixels, objects, replace_recipe(crop=True), key).labels.tolist()) for key in range(60)}
    assert {(1,), (2,), (1, 2)} <= counts | {()}
    assert any(len(each) < 2 for each in counts)


def replace_recipe(**change: Any) -> Recipe:
    return WHOLE._replace(**change)


def test_sizes_are_those_of_detr() -> None:
    assert fitted(480, 640, 800, 1333) == (800, 1067)
    assert fitted(640, 480, 800, 1333) == (1067, 800)
    assert fitted(300, 900, 800, 1333) == (444, 1333)
    drawn = {augmented(*rectangle(), replace_recipe(crop=False, longest=999), key).pixels.shape[1] for key in range(40)}
    assert drawn == {48, 64, 80}
    config = paper()
    assert (config.sizes, config.longest, config.largest) == (tuple(range(480, 801, 32)), 1333, 800)


def test_pictures_of_any_aspect_are_padded_and_masked() -> None:
    samples = [
        Sample(torch.full((3, h, w), 200, dtype=torch.uint8), torch.tensor([[0.0, 0.0, w / 2, h]]), torch.tensor([1]))
        for h, w in ((4, 9), (7, 3))
    ]
    batch = collate(samples)
    assert batch.inputs.shape == (2, 3, 7, 9)
    assert batch.mask.sum((1, 2)).tolist() == [36, 21]
    assert (batch.inputs[:, 0].bool() == batch.mask).all()
    torch.testing.assert_close(corners(batch.targets.boxes[:, 0]), torch.tensor([[0.0, 0.0, 0.5, 1.0]] * 2))
    shown = normalised(batch.inputs, batch.mask, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert (shown[~batch.mask[:, None].expand_as(shown)] == 0).all()
    torch.testing.assert_close(shown[0, :, 0, 0], torch.full((3,), 200 / 127.5 - 1))


@pytest.mark.parametrize("loaders", [0, pytest.param(2, marks=pytest.mark.plain)])
def test_streamed_batches_are_those_of_their_keys(loaders: int) -> None:
    config = replace(tiny(), loaders=loaders)
    pictures = scenes("train", 6)
    requests = [Request(torch.tensor([3, 1]), torch.tensor([7, -8])), Request(torch.tensor([0, 2]), torch.tensor([9, 4]))]
    recipe = Recipe(config.sizes, config.longest, config.largest, config.crop, config.flip)
    found = list(Streamed(pictures, config).training(requests, CPU))
    wanted = Augmented(pictures, recipe).__getitems__([(3, 7), (1, -8)])
    assert len(found) == 2
    assert torch.equal(found[0].inputs, wanted.inputs)
    assert torch.equal(found[0].targets.boxes, wanted.targets.boxes)


def test_scenes_have_garments_where_their_boxes_are_and_nothing_elsewhere() -> None:
    pictures = scenes("train", 30)
    assert np.array_equal(pictures.pixels(4), scenes("train", 30).pixels(4))
    assert not np.array_equal(pictures.pixels(4), scenes("train", 30, seed=1).pixels(4))
    for i in range(30):
        inside = np.zeros((SIDE, SIDE), bool)
        for x1, y1, x2, y2 in pictures.objects(i).boxes.astype(int):
            inside[y1:y2, x1:x2] = True
            assert pictures.pixels(i)[0, y1:y2, x1:x2].max() > 40
        assert (pictures.pixels(i)[:, ~inside] == 0).all()
    assert {len(pictures.objects(i).labels) for i in range(30)} >= {1, 2, 3}


@pytest.fixture
def frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DetectionConfig:
    """The small backbone with weights from a file, and a cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    host = model.DetrForObjectDetection(model.host_config(tiny(), 1))
    save_file(dict(host.model.backbone.model.state_dict()), tmp_path / "small.safetensors")
    return replace(tiny(), frozen=True, weights=tmp_path / "small.safetensors", sizes=(40, 64), longest=64)


def keep(config: DetectionConfig, pictures: Any, flips: int = 2) -> features.Features:
    asked = features.wanted(pictures, config.sizes, flips, config)
    return features.kept(asked, config, "digest", lambda: model.extractor(config), CPU)


def features_at(found: features.Features, picture: int, size: int, flip: int) -> Tensor:
    height, width = (-(-found.pixels[picture, size] // found.stride)).tolist()
    start = int(found.offsets[picture, size, flip])
    cells = torch.from_numpy(found.cells[start : start + height * width].copy()).view(torch.bfloat16)
    return rearrange(cells, "(h w) c -> h w c", h=height)


def test_kept_features_are_those_of_the_picture_alone(frozen: DetectionConfig) -> None:
    pictures = scenes("train", 5)
    found = keep(frozen, pictures)
    backbone = model.extractor(frozen)
    for index, (place, size), flip in ((0, (0, 40), 0), (4, (1, 64), 1)):
        pixels = resized(pictures.pixels(index), size, 64, flip=bool(flip))
        batch = collate([Sample(pixels, torch.empty(0, 4), torch.empty(0, dtype=torch.int64))])
        alone = features.features_of(backbone, batch, frozen)
        kept = features_at(found, index, place, flip)
        assert kept.shape == (size // 8, size // 8, 64)
        torch.testing.assert_close(rearrange(kept.float(), "h w c -> 1 c h w"), alone, atol=0.02, rtol=0.02)


def test_features_are_computed_once_and_say_how_far_they_are(
    frozen: DetectionConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = scenes("train", 3)
    first = keep(frozen, pictures)
    assert capsys.readouterr().err.endswith("100 % of the features of 3 pictures\n")
    monkeypatch.setattr(features, "_make", None)
    again = keep(frozen, pictures)
    assert np.array_equal(first.cells, again.cells)
    assert not capsys.readouterr().err
    with pytest.raises(TypeError):  # other pictures are made anew
        keep(frozen, scenes("train", 4))
    monkeypatch.setitem(features.KINDS, "small", features.KINDS["small"]._replace(mean=(0.4, 0.4, 0.4)))
    with pytest.raises(TypeError):  # and so are those of another backbone under the same name
        keep(frozen, pictures)


def drawn(kept: Kept, request: Request) -> Batch:
    """The batch of a request."""
    (made,) = kept.training([request], CPU)
    return kept.batch(made)


def test_batches_of_kept_features_have_their_boxes(frozen: DetectionConfig) -> None:
    pictures = scenes("train", 4)
    found = keep(frozen, pictures)
    request = Request(torch.tensor([2, 0, 1, 3]), torch.tensor([11, 12, 13, 14]))
    batch = drawn(Kept(pictures, found, crop=False, device=CPU), request)
    for place, index in enumerate(request.indices.tolist()):
        cells = int(batch.mask[place].sum()) ** 0.5
        size = frozen.sizes.index(int(cells * 8))
        shown = batch.inputs[place, :, : int(cells), : int(cells)].permute(1, 2, 0)
        plain, mirrored = (torch.equal(shown, features_at(found, index, size, flip)) for flip in (0, 1))
        assert plain != mirrored
        wanted = torch.from_numpy(pictures.objects(index).boxes / SIDE)
        if mirrored:
            wanted = torch.stack([1 - wanted[:, 2], wanted[:, 1], 1 - wanted[:, 0], wanted[:, 3]], dim=1)
        torch.testing.assert_close(corners(batch.targets.boxes[place, : len(wanted)]), wanted)
        assert batch.targets.labels[place, : len(wanted)].tolist() == pictures.objects(index).labels.tolist()
        assert batch.targets.real[place].sum() == len(wanted)
    assert {int(count) for count in batch.mask.sum((1, 2))} == {25, 64}


def test_all_batches_have_one_shape_and_nothing_in_their_padding(frozen: DetectionConfig) -> None:
    pictures = scenes("train", 4)
    kept = Kept(pictures, keep(frozen, pictures), crop=True, device=CPU)
    most = max(len(pictures.objects(i).labels) for i in range(4))
    for key in range(10):
        batch = drawn(kept, Request(torch.tensor([2, 0]), torch.tensor([key, key + 50])))
        assert batch.inputs.shape == (2, 64, 8, 8)
        assert batch.targets.real.shape == (2, most)
        assert batch.room == 64
        assert (batch.inputs.permute(0, 2, 3, 1)[~batch.mask] == 0).all()


def counted(height: int, width: int) -> tuple[Annotated, features.Features]:
    """A picture of these sides with two objects, in cells of 8 pixels that are numbered, and the mirror image's negative."""
    boxes = np.array([[8, 16, 32, 40], [0, 0, width, 4]], np.float32)
    pictures = replace(scenes("train", 1), sizes=np.array([[height, width]]), offsets=np.array([0, 2]), boxes=boxes,
                       labels=np.array([5, 6]))  # fmt: skip
    tall, wide = -(-height // 8), -(-width // 8)
    cells = torch.arange(tall * wide).float()
    values = torch.stack([cells, -cells]).reshape(-1, 1).bfloat16().view(torch.int16).numpy()
    offsets = np.array([[[0, tall * wide]]])
    return pictures, features.Features(values, offsets, np.array([[[height, width]]]), (height,), 8)


def test_a_part_of_kept_features_keeps_the_boxes_inside_of_it() -> None:
    pictures, found = counted(76, 48)  # the last of ten rows is half a cell
    kept = Kept(pictures, found, crop=True, device=CPU)
    seen = set()
    for key in range(200):
        batch = drawn(kept, Request(torch.tensor([0]), torch.tensor([key])))
        height, width = batch.mask[0].any(1).sum().item(), batch.mask[0].any(0).sum().item()
        part = batch.inputs[0, 0, :height, :width].float()
        mirrored = part.sum() < 0
        top, left = divmod(int(part[0, 0].abs()), 6)
        torch.testing.assert_close(part.abs(), (top + torch.arange(height))[:, None] * 6.0 + left + torch.arange(width))
        assert 6 <= height <= 10
        assert 4 <= width <= 6
        seen.add((top, left, height, width, bool(mirrored)))
        real, labels = batch.targets.real[0], batch.targets.labels[0]
        assert labels.tolist() == [5, 6]
        rows = min(top + height, 9.5) - top
        x1, x2 = (2, 5) if mirrored else (1, 4)
        wanted = np.clip([(x1 - left) / width, (2 - top) / rows, (x2 - left) / width, (5 - top) / rows], 0, 1)
        if real[0]:
            np.testing.assert_allclose(corners(batch.targets.boxes[0, 0]), wanted, atol=1e-6)
        assert real[0] == ((wanted[2:] > wanted[:2]).all())
        assert real[1] == (top == 0)
    sizes = {each[2:4] for each in seen}
    assert len(sizes) == 15
    assert {each[4] for each in seen} == {False, True}
    assert sum(each[2:4] == (10, 6) for each in seen) <= 2  # whole maps, either way round


def test_half_of_all_pictures_are_whole_where_parts_are_asked_for(frozen: DetectionConfig) -> None:
    pictures = scenes("train", 1)
    frozen = replace(frozen, sizes=(64,))
    kept = Kept(pictures, keep(frozen, pictures), crop=True, device=CPU)
    request = Request(torch.zeros(400, dtype=torch.int64), torch.arange(400))
    whole = drawn(kept, request).mask.all(2).all(1).float().mean()
    assert 0.45 < whole < 0.6  # parts have 5 to 8 cells a side, so one of 16 is whole too


def test_judged_pictures_come_in_order_at_their_size(frozen: DetectionConfig) -> None:
    pictures = scenes("test", 5)
    found = keep(frozen, pictures, flips=1)
    batches = list(Kept(pictures, found, crop=True, device=CPU).judged(torch.arange(5).split(3), 40, CPU))
    assert [batch.mask.sum((1, 2)).tolist() for batch in batches] == [[25] * 3, [25] * 2]
    assert torch.equal(batches[1].inputs[0, :, :5, :5].permute(1, 2, 0), features_at(found, 3, 0, 0))


def test_features_that_a_gpu_has_no_room_for_are_refused(frozen: DetectionConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = scenes("train", 3)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 2000))
    with pytest.raises(Problem, match=r"kept features take .* GiB of the GPU's memory, of which 0.0 are free"):
        Kept(pictures, keep(frozen, pictures), crop=True, device=torch.device("cuda"))
