import importlib
import itertools
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from lff.experiments.data import StreamedImages, augment, batches, centre_crop, folder, keys, listing, train_crop

CLASSES = ("n01", "n02", "n03")
# On a machine with one core torch advises against two workers.
workers_on_any_machine = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def smooth(width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture without sharp edges, which resizing and JPEG keep."""
    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def imagenet(root: Path, *, train: int = 4, val: int = 2, size: tuple[int, int] = (20, 16)) -> Path:
    """A folder in ImageNet's layout, with some files that are no pictures."""
    for split, count in (("train", train), ("val", val)):
        for number, name in enumerate(CLASSES):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                smooth(*size, seed=100 * number + 10 * i + len(split)).save(root / split / name / f"{name}_{i}.JPEG", quality=95)
            (root / split / name / "notes.txt").write_text("no picture")
            (root / split / name / "._hidden.JPEG").write_text("no picture")
    return root


def tiny_imagenet(source: Path, root: Path) -> Path:
    """The same pictures in Tiny-ImageNet's layout."""
    lines = []
    (root / "val" / "images").mkdir(parents=True)
    for name in CLASSES:
        shutil.copytree(source / "train" / name, root / "train" / name / "images")
        (root / "train" / name / f"{name}_boxes.txt").write_text("x.JPEG\t0\t0\t9\t9\n")
        for path in (source / "val" / name).glob("n*.JPEG"):
            shutil.copy(path, root / "val" / "images")
            lines.append(f"{path.name}\t{name}\t0\t0\t9\t9\n")
    (root / "val" / "val_annotations.txt").write_text("".join(reversed(lines)))
    return root


# Layouts


@pytest.mark.parametrize("split", ["train", "val"])
def test_both_layouts_read_alike(tmp_path: Path, split: str) -> None:
    one = imagenet(tmp_path / "one")
    other = tiny_imagenet(one, tmp_path / "other")
    first, second = folder(one, split), folder(other, split)
    assert torch.equal(first.pixels, second.pixels)
    assert torch.equal(first.labels, second.labels)
    assert first.classes == second.classes == CLASSES
    assert [Path(p).name for p in listing(one, split).paths] == [Path(p).name for p in listing(other, split).paths]


def test_labels_follow_the_sorted_training_classes_and_pictures_their_names(tmp_path: Path) -> None:
    files = listing(imagenet(tmp_path, train=2), "train")
    assert files.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert [Path(path).name for path in files.paths] == [f"{name}_{i}.JPEG" for name in CLASSES for i in range(2)]


def test_pixels_are_those_of_the_files(tmp_path: Path) -> None:
    images, files = folder(imagenet(tmp_path), "train"), listing(tmp_path, "train")
    assert images.pixels.shape == (12, 3, 16, 20)
    for pixels, path in zip(images.pixels, files.paths, strict=True):
        assert np.array_equal(pixels.permute(1, 2, 0).numpy(), np.asarray(Image.open(path)))


def test_what_is_missing_is_named_before_anything_is_decoded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no folder .*/nowhere: expected .* train/<class>/\*.JPEG"):
        listing(tmp_path / "nowhere", "train")
    with pytest.raises(ValueError, match=r"no folder .*/train"):
        listing(tmp_path, "train")
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"no class folders in .*/train"):
        listing(tmp_path, "train")
    shutil.rmtree(tmp_path / "train")
    imagenet(tmp_path)
    shutil.rmtree(tmp_path / "val")
    with pytest.raises(ValueError, match=r"no folder .*/val"):
        listing(tmp_path, "val")
    assert len(listing(tmp_path, "train").paths) == 12
    with pytest.raises(ValueError, match="split must be one of 'train', 'val', got 'test'"):
        listing(tmp_path, "test")


@pytest.mark.parametrize("split", ["train", "val"])
def test_an_empty_class_is_named(tmp_path: Path, split: str) -> None:
    for path in (imagenet(tmp_path) / split / "n02").glob("*.JPEG"):
        path.unlink()
    with pytest.raises(ValueError, match=rf"no pictures of class n02 in .*/{split}: expected"):
        listing(tmp_path, split)


def test_a_training_class_without_a_validation_folder_is_named(tmp_path: Path) -> None:
    shutil.rmtree(imagenet(tmp_path) / "val" / "n03")
    with pytest.raises(ValueError, match=r"no pictures of class n03 in .*/val"):
        listing(tmp_path, "val")


def test_a_validation_class_that_is_not_trained_is_named(tmp_path: Path) -> None:
    shutil.copytree(imagenet(tmp_path) / "val" / "n01", tmp_path / "val" / "n99")
    with pytest.raises(ValueError, match=r"class n99 is in .*/val but not in .*/train"):
        listing(tmp_path, "val")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: None, r"cannot read .*val_annotations\.txt: No such file"),
        (lambda text: b"\xff\xfe\xfa", r"cannot read .*val_annotations\.txt: it is no text"),
        (
            lambda text: text.replace(b"\t", b" "),
            r"val_annotations\.txt, line 1: expected a picture's name, a tab, its class; got",
        ),
        (lambda text: text + b"lost.JPEG\tn01\n", r"val_annotations\.txt, line 7: no picture lost\.JPEG in .*/images"),
        (lambda text: text.replace(b"\tn02", b"\tn77"), r"val_annotations\.txt, line \d: class n77 is not among the training"),
        (lambda text: text.split(b"\n", 1)[1], r"val_annotations\.txt has no line for n\d\d_\d\.JPEG"),
    ],
)
def test_annotations_that_do_not_fit_are_named(tmp_path: Path, change, message: str) -> None:
    root = tiny_imagenet(imagenet(tmp_path / "one"), tmp_path / "other")
    path = root / "val" / "val_annotations.txt"
    changed = change(path.read_bytes())
    path.unlink() if changed is None else path.write_bytes(changed)
    with pytest.raises(ValueError, match=message):
        listing(root, "val")


# Decoding


def test_other_kinds_of_pictures_become_rgb(tmp_path: Path) -> None:
    imagenet(tmp_path, train=0)
    picture = smooth(20, 16)
    grey, palette = picture.convert("L"), picture.quantize(16)
    for name in CLASSES[1:]:
        picture.save(tmp_path / "train" / name / "plain.png")
    here = tmp_path / "train" / "n01"
    grey.save(here / "a.png")
    picture.convert("CMYK").save(here / "b.jpg", quality=95)
    palette.save(here / "c.png")
    palette.save(here / "d.png", transparency=bytes(range(16)))
    picture.convert("RGBA").save(here / "e.png")
    picture.save(here / "f.JPEG", format="PNG")  # ImageNet has one of these
    pixels = folder(tmp_path, "train").pixels[:6]
    for i, expected in enumerate(
        [grey.convert("RGB"), picture, palette.convert("RGB"), palette.convert("RGB"), picture, picture]
    ):
        difference = pixels[i].permute(1, 2, 0).int() - torch.from_numpy(np.array(expected)).int()
        assert difference.abs().max() <= (8 if i == 1 else 0), i


def test_a_picture_of_more_than_8_bits_is_refused(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((16, 20), np.uint16)).save(imagenet(tmp_path) / "train" / "n01" / "deep.png")
    with pytest.raises(ValueError, match=r"deep\.png: expected 8 bits a channel, got Pillow's mode I;16"):
        folder(tmp_path, "train")


@pytest.mark.parametrize("size", [16, 30, 45])  # below 15 the JPEG would be decoded at half its size
def test_size_resizes_the_short_side_and_keeps_the_middle(tmp_path: Path, size: int) -> None:
    imagenet(tmp_path, size=(41, 30))
    images = folder(tmp_path, "val", size)
    assert images.pixels.shape == (6, 3, size, size)
    for pixels, path in zip(images.pixels, listing(tmp_path, "val").paths, strict=True):
        width = round(41 * size / 30)
        resized = np.asarray(Image.open(path).resize((width, size), Image.Resampling.BILINEAR))
        left = (width - size) // 2
        difference = pixels.permute(1, 2, 0).numpy().astype(int) - resized[:, left : left + size]
        assert abs(difference).max() <= 2


def test_sizes_that_differ_are_named(tmp_path: Path) -> None:
    smooth(24, 24).save(imagenet(tmp_path) / "train" / "n02" / "n02_2.JPEG")
    with pytest.raises(ValueError, match=r"must have one size.*\n.*n01_0\.JPEG has 20 x 16, .*n02_2\.JPEG has 24 x 24"):
        folder(tmp_path, "train")
    assert folder(tmp_path, "train", 12).pixels.shape == (12, 3, 12, 12)


@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
@pytest.mark.parametrize("cached", [False, True])
def test_a_damaged_picture_is_named(tmp_path: Path, damage: str, cached: bool) -> None:
    path = imagenet(tmp_path / "data") / "train" / "n03" / "n03_1.JPEG"
    content = path.read_bytes()
    path.write_bytes({"cut": content[: len(content) // 2], "text": b"not a picture", "empty": b""}[damage])
    cache = tmp_path / "cache" if cached else None
    with pytest.raises(ValueError, match=r"^cannot read the picture .*n03_1\.JPEG: [^\n]+$"):
        folder(tmp_path / "data", "train", cache=cache)
    assert not cached or list((tmp_path / "cache").iterdir()) == []


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    (imagenet(tmp_path / "data") / "train" / "n03" / "gone.JPEG").symlink_to(tmp_path / "nothing")
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(ValueError, match=r"cannot read the picture .*gone\.JPEG: No such file"):
            folder(tmp_path / "data", "train", cache=cache)


def test_workers_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("lff.experiments.data.folder"), "CHUNK", 2)
    imagenet(tmp_path)
    assert torch.equal(folder(tmp_path, "train", workers=1).pixels, folder(tmp_path, "train", workers=3).pixels)


def test_a_long_wait_is_shown_and_a_short_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(imagenet(tmp_path), "train")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(importlib.import_module("lff.experiments.data.folder"), "PATIENCE", 0.0)
    folder(tmp_path, "train")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Decoding 12 pictures" in shown.err


# The cache


def test_a_second_start_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imagenet(tmp_path / "data")
    first = folder(tmp_path / "data", "train", cache=tmp_path / "cache")
    assert torch.equal(first.pixels, folder(tmp_path / "data", "train").pixels)
    monkeypatch.setattr(Image, "open", None)
    second = folder(tmp_path / "data", "train", cache=tmp_path / "cache")
    assert torch.equal(first.pixels, second.pixels)
    assert torch.equal(first.labels, second.labels)


def test_the_cache_is_never_written_to_through_the_tensor(tmp_path: Path) -> None:
    imagenet(tmp_path / "data")
    first = folder(tmp_path / "data", "train", cache=tmp_path / "cache").pixels
    kept = first.clone()
    first.zero_()
    assert torch.equal(folder(tmp_path / "data", "train", cache=tmp_path / "cache").pixels, kept)


def _touched(root: Path) -> None:
    path = root / "train" / "n01" / "n01_0.JPEG"
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def _replaced_with_its_old_time(root: Path) -> None:
    path = root / "train" / "n02" / "n02_3.JPEG"
    stat = path.stat()
    smooth(20, 16, seed=999).save(path, quality=50)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _renamed(root: Path) -> None:
    (root / "train" / "n02" / "n02_3.JPEG").rename(root / "train" / "n03" / "n03_9.JPEG")


def _more(root: Path) -> None:
    smooth(20, 16, seed=999).save(root / "train" / "n02" / "n02_8.JPEG")


@pytest.mark.parametrize("change", [_touched, _replaced_with_its_old_time, _renamed, _more])
def test_a_changed_folder_is_never_served_from_an_old_cache(tmp_path: Path, change) -> None:
    root, cache = imagenet(tmp_path / "data"), tmp_path / "cache"
    folder(root, "train", cache=cache)
    change(root)
    again = folder(root, "train", cache=cache)
    assert len(list(cache.iterdir())) == 2
    assert torch.equal(again.pixels, folder(root, "train").pixels)
    assert torch.equal(again.labels, folder(root, "train").labels)


def test_sizes_and_splits_have_caches_of_their_own(tmp_path: Path) -> None:
    root, cache = imagenet(tmp_path / "data"), tmp_path / "cache"
    shapes = {tuple(folder(root, split, size, cache).pixels.shape) for split in ("train", "val") for size in (None, 8, 12)}
    assert shapes == {(n, 3, *hw) for n in (12, 6) for hw in ((16, 20), (8, 8), (12, 12))}


# Crops


def test_a_random_crop_is_a_function_of_its_key() -> None:
    picture = smooth(60, 40)
    crops = [train_crop(picture, 24, key).tobytes() for key in (5, 5, 6, -5, 2**63 - 1, -(2**63))]
    assert crops[0] == crops[1]
    assert len(set(crops[1:])) == 5


def test_random_crops_keep_to_area_and_aspect_and_half_are_mirrored() -> None:
    # The red channel is the column, the green one the row, so that a crop tells where it was cut.
    width, height = 250, 200
    picture = Image.fromarray(
        np.stack(np.broadcast_arrays(np.arange(width)[None], np.arange(height)[:, None], 0), axis=-1).astype(np.uint8)
    )
    areas, aspects, mirrored = [], [], 0
    for key in keys(0, 0, 600).tolist():
        crop = np.asarray(train_crop(picture, 16, key)).astype(float)
        across, down = crop[8, -1, 0] - crop[8, 0, 0], crop[-1, 8, 1] - crop[0, 8, 1]
        mirrored += across < 0
        w, h = abs(across) * 16 / 15, down * 16 / 15
        areas.append(w * h / (width * height))
        aspects.append(w / h)
    assert 0.04 < min(areas) < 0.1
    assert 0.9 < max(areas) < 1.05
    assert min(aspects) > 0.72
    assert max(aspects) < 1.39
    # The largest areas fit with few aspects only, so the mean is a little under the middle.
    assert 0.4 < np.mean(areas) < 0.55
    assert abs(np.mean(np.log(aspects))) < 0.05
    assert 0.43 < mirrored / 600 < 0.57


@pytest.mark.parametrize("size", [(3, 400), (400, 3), (1, 1)])
def test_pictures_of_any_shape_can_be_cropped(size: tuple[int, int]) -> None:
    assert train_crop(smooth(*size), 16, 1).size == (16, 16)
    assert centre_crop(smooth(*size), 16).size == (16, 16)


@pytest.mark.parametrize(("width", "height"), [(300, 200), (200, 333), (256, 256), (511, 97)])
def test_the_centre_crop_is_resizing_then_cropping(width: int, height: int) -> None:
    picture = smooth(width, height)
    scale = 146 / min(width, height)
    resized = picture.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)
    left, top = (resized.width - 128) // 2, (resized.height - 128) // 2
    expected = np.asarray(resized.crop((left, top, left + 128, top + 128))).astype(int)
    # 146 = 128 * 256 / 224, rounded. Each of the two axes may round one level off.
    assert abs(np.asarray(centre_crop(picture, 128)) - expected).max() <= 2


def test_a_picture_of_the_right_size_is_left_alone() -> None:
    picture = smooth(64, 64)
    assert centre_crop(picture, 64, 64).tobytes() == picture.tobytes()


def test_a_crop_larger_than_what_is_resized_to_is_refused() -> None:
    with pytest.raises(ValueError, match="resize must be at least size, got resize=8 and size=16"):
        centre_crop(smooth(32, 32), 16, 8)


@pytest.mark.parametrize("size", [31, 32, 100, 250])
def test_a_jpeg_is_decoded_small_but_never_smaller_than_needed(tmp_path: Path, size: int, monkeypatch) -> None:
    smooth(1003, 757).save(tmp_path / "large.jpg", quality=95)
    sizes: list[tuple[tuple[int, int], tuple[float, ...]]] = []
    resize = Image.Image.resize

    def spy(image: Image.Image, to: tuple[int, int], resample: int, box: tuple[float, ...]) -> Image.Image:
        sizes.append((image.size, box))
        return resize(image, to, resample, box=box)

    monkeypatch.setattr(Image.Image, "resize", spy)
    for key in [None, *range(20)]:
        with Image.open(tmp_path / "large.jpg") as lazy, Image.open(tmp_path / "large.jpg") as whole:
            whole.load()
            crops = [centre_crop(image, size) if key is None else train_crop(image, size, key) for image in (lazy, whole)]
        assert abs(np.asarray(crops[0]).astype(int) - np.asarray(crops[1])).max() <= 6
        (small, box), (full, full_box) = sizes[-2:]
        assert full == (1003, 757)
        for first, last, side in ((0, 2, 0), (1, 3, 1)):
            assert box[last] - box[first] >= min(size, full_box[last] - full_box[first])
            assert box[last] <= small[side]
    assert min(small[0] for small, _ in sizes) < 600  # it does happen


# Streaming


def requests(dataset: StreamedImages, steps: int | None = None, batch: int = 5) -> Iterator[tuple[Tensor, Tensor]]:
    for step in itertools.count() if steps is None else range(steps):
        yield keys(1, step, batch) % len(dataset), keys(2, step, batch)


@pytest.mark.plain
@workers_on_any_machine
@pytest.mark.parametrize("train", [True, False])
def test_the_number_of_workers_changes_no_batch(tmp_path: Path, train: bool) -> None:
    dataset = StreamedImages(listing(imagenet(tmp_path, size=(40, 30)), "train"), 16, train)
    alone, helped = (list(batches(dataset, requests(dataset, 7), workers)) for workers in (0, 2))
    assert len(alone) == len(helped) == 7
    for step, (one, other) in enumerate(zip(alone, helped, strict=True)):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])
        indices, chance = keys(1, step, 5) % len(dataset), keys(2, step, 5)
        for place in range(5):
            pixels, label = dataset[int(indices[place]), int(chance[place])]
            assert torch.equal(one[0][place], pixels)
            assert one[1][place] == label


def test_batches_are_bytes_with_labels_and_leave_torchs_generator_alone(tmp_path: Path) -> None:
    dataset = StreamedImages(listing(imagenet(tmp_path), "train"), 16, True)
    assert len(dataset) == 12
    before = torch.get_rng_state()
    (pixels, labels), *_ = batches(dataset, requests(dataset, 2), 0)
    assert torch.equal(torch.get_rng_state(), before)
    assert pixels.shape == (5, 3, 16, 16)
    assert pixels.dtype == torch.uint8
    assert labels.tolist() == [i // 4 for i in (keys(1, 0, 5) % 12).tolist()]


def test_without_training_the_key_changes_nothing(tmp_path: Path) -> None:
    dataset = StreamedImages(listing(imagenet(tmp_path), "val"), 16, False)
    assert torch.equal(dataset[3, 1][0], dataset[3, 2][0])


@pytest.mark.parametrize("size", [12, 30, 45])
def test_resized_to_its_size_a_stream_has_the_pixels_of_pictures_decoded_once(tmp_path: Path, size: int) -> None:
    imagenet(tmp_path, size=(41, 30))
    (pixels, labels), *_ = batches(
        StreamedImages(listing(tmp_path, "val"), size, False, resize=size), [(torch.arange(6), torch.arange(6))], 0
    )
    once = folder(tmp_path, "val", size)
    assert torch.equal(pixels, once.pixels)
    assert torch.equal(labels, once.labels)


def test_a_stream_that_cuts_out_more_than_it_resizes_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="resize must be a whole number of at least 16, got 8"):
        StreamedImages(listing(imagenet(tmp_path), "val"), 16, False, resize=8)


@pytest.mark.plain
@workers_on_any_machine
@pytest.mark.parametrize("workers", [0, 2])
def test_closing_ends_an_endless_stream_and_its_workers(tmp_path: Path, workers: int) -> None:
    dataset = StreamedImages(listing(imagenet(tmp_path), "train"), 16, True)
    stream = batches(dataset, requests(dataset), workers)
    for _ in range(20):
        next(stream)
    started = multiprocessing.active_children()
    assert len(started) == workers
    stream.close()
    deadline = time.monotonic() + 10
    while any(process.is_alive() for process in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(process.is_alive() for process in started)


@pytest.mark.plain
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(
        "import itertools, sys, time, torch\n"
        "from lff.experiments.data import StreamedImages, batches, listing\n"
        "if __name__ == '__main__':\n"
        "    dataset = StreamedImages(listing(sys.argv[1], 'train'), 16, True)\n"
        "    stream = batches(dataset, itertools.repeat((torch.arange(4), torch.arange(4))), 1)\n"
        "    next(stream)\n"
        "    print('started', flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, str(script), str(imagenet(tmp_path / "data"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
        process.communicate(timeout=20)  # a worker that lived on would keep the pipe open


@pytest.mark.plain
@workers_on_any_machine
@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_picture_of_a_stream_is_named_in_one_line(tmp_path: Path, workers: int) -> None:
    path = imagenet(tmp_path) / "train" / "n02" / "n02_1.JPEG"
    path.write_bytes(b"not a picture")
    dataset = StreamedImages(listing(tmp_path, "train"), 16, True)
    stream = batches(dataset, ((torch.tensor([i]), torch.tensor([0])) for i in range(12)), workers)
    for _ in range(5):
        next(stream)
    with pytest.raises(ValueError, match=r"^cannot read the picture [^\n]*n02_1\.JPEG: [^\n]+$"):
        next(stream)


# Augmentation of tensors


def mixed(word: int) -> int:
    for shift, factor in ((16, 0x7FEB352D), (15, 0x2C1B3C6D), (13, 0x297A2D39)):
        word = (word ^ (word >> shift)) * factor % 2**32
    return word ^ (word >> 16)


def augmented_slowly(pixels: Tensor, chance: Tensor, padding: int) -> Tensor:
    """Picture by picture, pixel by pixel, in Python's integers."""
    out = torch.zeros_like(pixels)
    height, width = pixels.shape[2:]
    for i, key in enumerate(chance.tolist()):
        word = mixed(mixed(key % 2**32) ^ ((key >> 32) % 2**32))
        down, right, mirror = (mixed((word + j * 0x9E3779B9) % 2**32) for j in (1, 2, 3))
        down, right = (value * (2 * padding + 1) // 2**32 - padding for value in (down, right))
        for row, col in itertools.product(range(height), range(width)):
            to = width - 1 - col if mirror >= 2**31 else col
            if 0 <= row + down < height and 0 <= col + right < width:
                out[i, :, row, to] = pixels[i, :, row + down, col + right]
    return out


@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_augmenting_is_the_slow_loop(padding: int, dtype: torch.dtype) -> None:
    pixels = torch.randint(1, 256, (24, 2, 7, 5)).to(dtype)
    chance = torch.cat([keys(0, 0, 16), torch.tensor([0, 1, 2, -1, -2, 2**63 - 1, -(2**63), 2**32])])
    out = augment(pixels, chance, padding)
    assert out.dtype == dtype
    assert torch.equal(out, augmented_slowly(pixels, chance, padding))


@pytest.mark.parametrize(
    "chance", [keys(0, 0, 20000), torch.arange(20000), torch.arange(20000) << 32], ids=["mixed", "low", "high"]
)
def test_shifts_are_uniform_and_half_are_mirrored_also_for_consecutive_keys(chance: Tensor) -> None:
    # One bright pixel off the middle of 7 x 8 tells the shift and, by the parity of its column, the mirror.
    padding, pixels = 1, torch.zeros(20000, 1, 7, 8, dtype=torch.uint8)
    pixels[:, :, 3, 1] = 1
    place = augment(pixels, chance, padding).flatten(1).int().argmax(1)
    row, col = place // 8, place % 8
    mirrored = (col >= 4).long()
    col = torch.where(mirrored == 1, 7 - col, col)
    kind = (row - 2) * 6 + col * 2 + mirrored
    counts = torch.bincount(kind, minlength=18).double()
    assert counts.sum() == 20000
    assert len(counts) == 18
    # Chi square of 17 degrees of freedom: above 45 once in 4,000 cases. All 18 kinds alike means independence too.
    assert ((counts - 20000 / 18) ** 2 / (20000 / 18)).sum() < 45
    # Neighbours have nothing to do with each other.
    assert abs((mirrored[1:] == mirrored[:-1]).double().mean() - 0.5) < 0.015
    assert abs((row[1:] == row[:-1]).double().mean() - 1 / 3) < 0.015


def test_keys_are_a_function_of_seed_step_and_place() -> None:
    assert torch.equal(keys(3, 7, 10), keys(3, 7, 64)[:10])
    some = torch.cat([keys(seed, step, 50) for seed in (0, 1, 2, -1, 2**40) for step in (0, 1, 2, 10**6)])
    assert len(some.unique()) == len(some)
    assert keys(0, 0, 0).shape == (0,)


def test_every_bit_of_a_key_is_a_fair_coin() -> None:
    for drawn in (
        keys(0, 0, 4096),
        torch.cat([keys(0, step, 1) for step in range(4096)]),
        torch.cat([keys(s, 0, 1) for s in range(4096)]),
    ):
        bits = (drawn[:, None] >> torch.arange(64)) & 1
        assert (bits.double().mean(0) - 0.5).abs().max() < 0.04  # five standard deviations
        assert ((bits[1:] ^ bits[:-1]).double().mean(0) - 0.5).abs().max() < 0.04


@pytest.mark.compile
def test_augmenting_compiles_to_the_same() -> None:
    pixels, chance = torch.randint(0, 256, (16, 3, 8, 8), dtype=torch.uint8), keys(0, 0, 16)
    compiled = torch.compile(augment, fullgraph=True, backend="aot_eager")  # C++ takes a minute to compile
    assert torch.equal(compiled(pixels, chance, 2), augment(pixels, chance, 2))


@pytest.mark.gpu
def test_augmenting_is_the_same_on_a_gpu() -> None:
    pixels, chance = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8), keys(0, 0, 64)
    expected = augment(pixels, chance, 4)
    there, key = pixels.cuda(), chance.cuda()
    torch.cuda.set_sync_debug_mode("error")  # nothing waits for the device
    try:
        out = augment(there, key, 4)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(out.cpu(), expected)


def test_padding_that_is_no_size_is_named() -> None:
    with pytest.raises(ValueError, match="padding must be a whole number of at least 0, got -1"):
        augment(torch.zeros(1, 1, 4, 4), torch.zeros(1, dtype=torch.int64), -1)
