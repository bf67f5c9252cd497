"""Pictures without labels: the layouts, what is converted, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from image_folders import smooth
from PIL import Image

from lff.experiments.data import centre_crop, downsampled


def published(root: Path, size: int = 16, train: int = 4, valid: int = 2) -> Path:
    for name, count in (("train", train), ("valid", valid)):
        folder = root / f"{name}_{size}x{size}"
        folder.mkdir(parents=True)
        for i in range(count):
            smooth(size, size, seed=10 * len(name) + i).save(folder / f"{i + 1:07d}.png")
    return root


def planes(folder: Path) -> np.ndarray:
    return np.stack([np.asarray(Image.open(path)).transpose(2, 0, 1) for path in sorted(folder.iterdir())])


def test_the_published_folders_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    published(tmp_path)
    for split, folder, count in (("train", "train_16x16", 4), ("val", "valid_16x16", 2)):
        pixels = downsampled(tmp_path, split, 16)
        assert pixels.shape == (count, 3, 16, 16)
        assert np.array_equal(pixels.numpy(), planes(tmp_path / folder))


def test_the_published_batches_are_planes_of_colours_joined_by_number(tmp_path: Path) -> None:
    wanted = planes(published(tmp_path / "png", train=23) / "train_16x16")
    held = tmp_path / "npz"
    held.mkdir()
    for i in range(11):  # 10 and 11 come after 2, not after 1
        np.savez(held / f"train_data_batch_{i + 1}.npz", data=wanted[2 * i : 2 * i + 2].reshape(2, -1), labels=np.ones(2))
    np.savez_compressed(held / "val_data.npz", data=wanted[22:].reshape(1, -1), labels=np.ones(1))
    assert np.array_equal(downsampled(held, "train", 16).numpy(), wanted[:22])
    assert np.array_equal(downsampled(held, "val", 16).numpy(), wanted[22:])
    cache = tmp_path / "cache"
    first = downsampled(held, "train", 16, cache)
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    assert torch.equal(downsampled(held, "train", 16, cache), first)
    assert kept.stat().st_mtime_ns == written


def test_any_folder_of_pictures_is_resized_and_cut_to_the_size(tmp_path: Path) -> None:
    for name in ("train/b/2.jpg", "train/a/1.png", "train/0.png", "val/x.webp", "train/.hidden/3.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        smooth(40, 30, seed=len(name)).save(path)
    pixels = downsampled(tmp_path, "train", 12)
    assert pixels.shape == (3, 3, 12, 12)
    for found, name in zip(pixels, ("train/0.png", "train/a/1.png", "train/b/2.jpg"), strict=True):
        with Image.open(tmp_path / name) as image:
            wanted = np.asarray(centre_crop(image, 12, 12))
        assert np.array_equal(found.permute(1, 2, 0).numpy(), wanted)
    assert downsampled(tmp_path, "val", 12).shape == (1, 3, 12, 12)


def test_published_pictures_can_be_made_smaller(tmp_path: Path) -> None:
    published(tmp_path)
    pixels = downsampled(tmp_path, "train", 8)
    assert pixels.shape == (4, 3, 8, 8)
    with Image.open(tmp_path / "train_16x16" / "0000001.png") as image:
        wanted = np.asarray(image.resize((8, 8), Image.Resampling.BILINEAR))
    assert np.array_equal(pixels[0].permute(1, 2, 0).numpy(), wanted)


def test_a_grey_picture_has_three_equal_channels(tmp_path: Path) -> None:
    grey = smooth(16, 16).convert("L")
    grey.save(published(tmp_path) / "train_16x16" / "0000002.png")
    pixels = downsampled(tmp_path, "train", 16)[1]
    assert all(np.array_equal(channel.numpy(), np.asarray(grey)) for channel in pixels)


def test_a_truncated_png_is_named(tmp_path: Path) -> None:
    path = published(tmp_path) / "train_16x16" / "0000003.png"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"cannot read the picture .*0000003\.png: "):
        downsampled(tmp_path, "train", 16)


@pytest.mark.parametrize("which", ["0000001.png", "0000003.png"])
def test_a_published_picture_of_another_size_is_named(tmp_path: Path, which: str) -> None:
    smooth(16, 15).save(published(tmp_path) / "train_16x16" / which)
    with pytest.raises(ValueError, match=rf"{which} has 16 x 15" if which != "0000001.png" else r"0000002\.png has 16 x 16"):
        downsampled(tmp_path, "train", 16)
    for path in (tmp_path / "train_16x16").iterdir():
        smooth(15, 15).save(path)
    with pytest.raises(ValueError, match=r"train_16x16 must be 16 x 16, got 15 x 15 .*0000001\.png"):
        downsampled(tmp_path, "train", 16)


def test_what_is_not_there_is_said_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no folder .*nowhere: expected one with train_64x64"):
        downsampled(tmp_path / "nowhere", "train", 16)
    with pytest.raises(ValueError, match=r"no folder .*train: expected train_64x64/\*\.png"):
        downsampled(tmp_path, "train", 16)
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"no pictures in .*train: expected files that end in \.bmp"):
        downsampled(tmp_path, "train", 16)
    (tmp_path / "other" / "train_32x32").mkdir(parents=True)
    (tmp_path / "other" / "valid_64x64").mkdir()
    with pytest.raises(ValueError, match="must hold pictures of one size, got folders of 32 and 64"):
        downsampled(tmp_path / "other", "train", 32)


def test_batches_that_are_damaged_missing_or_of_another_kind_are_named(tmp_path: Path) -> None:
    data = np.zeros((2, 768), np.uint8)
    np.savez(tmp_path / "train_data_batch_1.npz", data=data)
    with pytest.raises(ValueError, match=r"no val_data\.npz in "):
        downsampled(tmp_path, "train", 16)
    np.savez(tmp_path / "val_data.npz", data=data)
    with pytest.raises(ValueError, match=r"train_data_batch_1\.npz holds pictures of 16 x 16: give --size 16, got 32"):
        downsampled(tmp_path, "train", 32)
    np.savez(tmp_path / "train_data_batch_3.npz", data=data)
    with pytest.raises(ValueError, match=r"no train_data_batch_2\.npz in .* number 3"):
        downsampled(tmp_path, "train", 16)
    broken = tmp_path / "train_data_batch_2.npz"
    for content, said in (
        (b"no archive", "cannot read the batch"),
        (None, r"must have data of shape .* got \[2, 10\] in float64"),
    ):
        broken.write_bytes(content) if content else np.savez(broken, data=np.zeros((2, 10)))
        with pytest.raises(
            ValueError, match=rf"train_data_batch_2\.npz.*{said}" if content is None else rf"{said} .*batch_2\.npz"
        ):
            downsampled(tmp_path, "train", 16)
    np.savez(broken, other=data)
    with pytest.raises(ValueError, match=r"batch_2\.npz: .*data\.npy.*expected an npz with data"):
        downsampled(tmp_path, "train", 16)
    np.savez(broken, data=np.arange(2 * 768, dtype=np.uint8).reshape(2, 768))
    whole = bytearray(broken.read_bytes())
    whole[400] ^= 255
    broken.write_bytes(whole)
    with pytest.raises(ValueError, match=r"cannot read the batch .*batch_2\.npz"):
        downsampled(tmp_path, "train", 16)
