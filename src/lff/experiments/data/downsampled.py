"""Pictures without labels, of one size: downsampled ImageNet as it is published, or any folder of pictures.

Three layouts, told apart by what is there:

- train_64x64/*.png and valid_64x64/*.png (van den Oord et al., 2016), or another size in both names;
- train_data_batch_1.npz, train_data_batch_2.npz, ... and val_data.npz (Chrabaszcz et al., 2017), whose rows are planes of red,
  green and blue;
- train/ and val/ with pictures, in folders of classes or not.
"""

import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from einops import rearrange
from jaxtyping import UInt8
from torch import Tensor

from lff import arguments
from lff.experiments.data.folder import decoded, digest, kept
from lff.experiments.data.layout import ENDINGS

EXPECTED = (
    "train_64x64/*.png and valid_64x64/*.png, train_data_batch_*.npz and val_data.npz, or train/ and val/ with pictures in them"
)


def downsampled(
    root: str | Path, split: str, size: int, cache: str | Path | None = None, workers: int | None = None
) -> UInt8[Tensor, "n 3 {size} {size}"]:
    """All pictures of a split, RGB; grey ones have three equal channels.

    Pictures of a folder are resized along their short side and cut in the middle where they are not of `size`, except those of
    downsampled ImageNet at its own size, which must have that size. Batches are read at their own size alone. What cannot be
    read raises a ValueError that names the file.

    Args:
        root: the folder of one of the layouts.
        split: "train" or "val".
        size: height and width.
        cache: a folder where decoded pictures are kept and mapped from; see `lff.experiments.data.folder`.
        workers: threads that decode.
    """
    arguments.choice("split", split, ("train", "val"))
    arguments.whole("size", size)
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"no folder {root}: expected one with {EXPECTED}")
    if batches := _batches(root, split):
        return _from_batches(batches, split, size, cache)
    folder, own = _folder(root, split)
    paths = _pictures(folder)
    if not paths:
        raise ValueError(f"no pictures in {folder}: expected files that end in {', '.join(ENDINGS)}")
    pixels = decoded(paths, split, None if own == size else size, cache, workers)
    if pixels.shape[2:] != (size, size):
        raise ValueError(f"pictures in {folder} must be {size} x {size}, got {pixels.shape[3]} x {pixels.shape[2]} ({paths[0]})")
    return pixels


def _batches(root: Path, split: str) -> list[Path]:
    """The batches of a split, by their numbers."""
    numbered = {
        int(found[1]): path for path in root.iterdir() if (found := re.fullmatch(r"train_data_batch_(\d+)\.npz", path.name))
    }
    test = root / "val_data.npz"
    if not numbered and not test.exists():
        return []
    if not numbered or not test.exists():
        missing = "val_data.npz" if numbered else "train_data_batch_1.npz"
        raise ValueError(f"no {missing} in {root}: expected train_data_batch_*.npz and val_data.npz")
    if gaps := sorted(set(range(1, max(numbered) + 1)) - numbered.keys()):
        raise ValueError(f"no train_data_batch_{gaps[0]}.npz in {root}, which has number {max(numbered)}")
    return [numbered[number] for number in sorted(numbered)] if split == "train" else [test]


def _folder(root: Path, split: str) -> tuple[Path, int | None]:
    """The folder of a split, and the size that its name states."""
    stated = {
        (found[1], int(found[2])): path
        for path in sorted(root.iterdir())
        if path.is_dir() and (found := re.fullmatch(r"(train|valid)_(\d+)x\2", path.name))
    }
    sizes = sorted({size for _, size in stated})
    if len(sizes) > 1:
        raise ValueError(f"{root} must hold pictures of one size, got folders of {' and '.join(map(str, sizes))}")
    plain = root / split
    wanted = root / f"{'train' if split == 'train' else 'valid'}_{sizes[0]}x{sizes[0]}" if sizes else plain
    if not wanted.is_dir():
        raise ValueError(f"no folder {wanted}: expected {EXPECTED}")
    return wanted, sizes[0] if sizes else None


def _pictures(folder: Path) -> list[str]:
    """The pictures of a folder and those inside it, sorted."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(where, name) for name in names if name.lower().endswith(ENDINGS) and not name.startswith(".")]
    return sorted(found)


def _from_batches(batches: list[Path], split: str, size: int, cache: str | Path | None) -> Tensor:
    def chunks() -> tuple[tuple[int, ...], Iterator[np.ndarray]]:
        counts = [_count(path, size) for path in batches]
        return (sum(counts), 3, size, size), (_rows(path, size) for path in batches)

    file = None if cache is None else Path(cache) / f"{split}-{digest([str(path) for path in batches], size)}.npy"
    return kept(chunks, file)


def _count(path: Path, size: int) -> int:
    """Pictures of a batch, from its header: all of them together may not fit into memory."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("data.npy") as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = header(file)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"cannot read the batch {path}: {error}; expected an npz with data") from None
    if len(shape) != 2 or dtype != np.uint8 or shape[1] % 3 or round((shape[1] // 3) ** 0.5) ** 2 * 3 != shape[1]:
        raise ValueError(f"{path} must have data of shape [pictures, 3 x size x size] in uint8, got {list(shape)} in {dtype}")
    if shape[1] != 3 * size * size:
        own = round((shape[1] // 3) ** 0.5)
        raise ValueError(f"{path} holds pictures of {own} x {own}: give --size {own}, got {size}")
    return int(shape[0])


def _rows(path: Path, size: int) -> UInt8[np.ndarray, "n 3 {size} {size}"]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return rearrange(arrays["data"], "n (rgb h w) -> n rgb h w", rgb=3, h=size)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"cannot read the batch {path}: {error}") from None
