import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from image_folders import CLASSES, imagenet

from lff.experiments.data import folder, listing


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
def test_annotations_that_do_not_fit_are_named(tmp_path: Path, change: Callable[[bytes], bytes | None], message: str) -> None:
    root = tiny_imagenet(imagenet(tmp_path / "one"), tmp_path / "other")
    path = root / "val" / "val_annotations.txt"
    changed = change(path.read_bytes())
    path.unlink() if changed is None else path.write_bytes(changed)
    with pytest.raises(ValueError, match=message):
        listing(root, "val")
