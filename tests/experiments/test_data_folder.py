"""Pictures decoded once: their pixels, what goes wrong, and the cache."""

import importlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from image_folders import CLASSES, imagenet, smooth
from PIL import Image

from lff.experiments.data import folder, listing


def test_pixels_are_those_of_the_files(tmp_path: Path) -> None:
    images, files = folder(imagenet(tmp_path), "train"), listing(tmp_path, "train")
    assert images.pixels.shape == (12, 3, 16, 20)
    for pixels, path in zip(images.pixels, files.paths, strict=True):
        assert np.array_equal(pixels.permute(1, 2, 0).numpy(), np.asarray(Image.open(path)))


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
def test_a_changed_folder_is_never_served_from_an_old_cache(tmp_path: Path, change: Callable[[Path], None]) -> None:
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
