import itertools
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from image_folders import imagenet
from torch import Tensor

from lff.experiments.data import StreamedImages, batches, folder, keys, listing


def requests(dataset: StreamedImages, steps: int | None = None, batch: int = 5) -> Iterator[tuple[Tensor, Tensor]]:
    for step in itertools.count() if steps is None else range(steps):
        yield keys(1, step, batch) % len(dataset), keys(2, step, batch)


@pytest.mark.plain
def test_there_are_no_more_workers_than_cores(tmp_path: Path) -> None:
    """Otherwise torch warns, which is an error here."""
    dataset = StreamedImages(listing(imagenet(tmp_path, size=(40, 30)), "train"), 16, True)
    running = batches(dataset, requests(dataset), len(os.sched_getaffinity(0)) + 3)
    next(running)
    assert len(multiprocessing.active_children()) <= len(os.sched_getaffinity(0))
    running.close()


@pytest.mark.plain
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
