import gzip
import hashlib
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from lff.experiments.data import embedded
from lff.experiments.data.fashion import make

SHIPPED = Path(str(resources.files("lff.experiments.data"))) / "fashion"
SOURCE = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package puts it
PUBLISHED = pytest.mark.skipif(not SOURCE.is_dir(), reason="needs the published files of Fashion-MNIST")


@pytest.mark.parametrize(("split", "each"), [("train", 1000), ("test", 200)])
def test_both_splits_have_as_many_pictures_of_each_class(split: str, each: int) -> None:
    images = embedded(split)
    assert images.pixels.shape == (10 * each, 1, 28, 28)
    assert images.pixels.dtype == torch.uint8
    assert images.labels.bincount().tolist() == [each] * 10
    assert len(images.classes) == 10


def test_splits_share_no_picture() -> None:
    train, test = ({picture.numpy().tobytes() for picture in embedded(split).pixels} for split in ("train", "test"))
    assert not train & test


def test_the_shipped_file_is_the_one_that_was_made() -> None:
    content = (SHIPPED / "fashion.npz").read_bytes()
    assert len(content) < 5e6
    assert hashlib.sha256(content).hexdigest() == "cc78eda5c3afa800855321ac952670ecc5d0a41cd01cb3c61dd9084e373ed040"


def test_the_licence_is_shipped() -> None:
    text = (SHIPPED / "LICENSE").read_text()
    assert "Zalando SE" in text
    assert "Permission is hereby granted" in text


@PUBLISHED
def test_the_shipped_file_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    make.make(SOURCE, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (SHIPPED / "fashion.npz").read_bytes()


@PUBLISHED
def test_pictures_are_the_first_of_each_class_in_the_official_order() -> None:
    pixels, labels = (make._idx(SOURCE / f"t10k-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    seen: dict[int, int] = {}
    chosen = []
    for place, label in enumerate(labels.tolist()):
        seen[label] = seen.get(label, 0) + 1
        chosen += [place] if seen[label] <= 200 else []
    images = embedded("test")
    assert np.array_equal(images.pixels[:, 0].numpy(), pixels[chosen])
    assert np.array_equal(images.labels.numpy(), labels[chosen])


def test_a_file_that_is_no_idx_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"\x89PNG and so on"))
    with pytest.raises(
        ValueError, match=r"train-images-idx3-ubyte\.gz must be an idx file of bytes, got one that starts with 89504e47"
    ):
        make.make(tmp_path, tmp_path / "out.npz")


def test_an_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match="split must be one of 'train', 'test', got 'val'"):
        embedded("val")


@pytest.mark.plain
def test_the_library_imports_none_of_it() -> None:
    code = "import sys, lff; print([m for m in sys.modules if m.startswith(('PIL', 'rich', 'lff.experiments'))])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
