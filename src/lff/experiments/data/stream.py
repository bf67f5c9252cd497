"""Pictures decoded while training goes on, by other processes: for folders that no memory holds."""

import multiprocessing
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lff import arguments
from lff.experiments.data.layout import Listing
from lff.experiments.data.picture import centre_crop, read, train_crop
from lff.experiments.devices import cores

#: The index of a picture and the key that alone decides its crop.
Request = tuple[int, int]


class StreamedImages(Dataset[tuple[Tensor, Tensor]]):
    """The pictures of a listing, decoded when asked for: `dataset[index, key]` is (pixels, label).

    A request holds all that decides its answer, so neither the order of requests nor the number of workers changes a pixel.

    Args:
        listing: which pictures.
        size: the side of the square that is cut out.
        train: cut out a random part, decided by the key (`train_crop`); otherwise the middle (`centre_crop`), whatever the key.
        resize: what the short side is resized to before the middle is cut out, by default size * 256 / 224. With `size` itself
            the pixels are those of `lff.experiments.data.folder`.
    """

    def __init__(self, listing: Listing, size: int, train: bool, *, resize: int | None = None) -> None:
        # Arrays, since each worker gets its own copy: a million strings take ten times as long to send.
        self.paths = np.array([os.fsencode(path) for path in listing.paths])
        self.labels = listing.labels
        self.size, self.train = arguments.whole("size", size), train
        self.resize = None if resize is None else arguments.whole("resize", resize, least=size)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, request: Request) -> tuple[UInt8[Tensor, "3 size size"], Int64[Tensor, ""]]:
        index, key = request
        return torch.from_numpy(self._read(index, key)), self.labels[index]

    def __getitems__(self, requests: Sequence[Request]) -> tuple[UInt8[Tensor, "n 3 size size"], Int64[Tensor, "n"]]:
        """A batch, already joined: DataLoader asks for one in this way."""
        pixels = np.empty((len(requests), 3, self.size, self.size), np.uint8)
        for place, (index, key) in enumerate(requests):
            pixels[place] = self._read(index, key)
        return torch.from_numpy(pixels), self.labels[[index for index, _ in requests]]

    def _read(self, index: int, key: int) -> UInt8[np.ndarray, "3 size size"]:
        def transform(image: Image.Image) -> Image.Image:
            return train_crop(image, self.size, key) if self.train else centre_crop(image, self.size, self.resize)

        return np.ascontiguousarray(read(os.fsdecode(self.paths[index]), transform))


def batches(
    dataset: Any,
    requests: Iterable[tuple[Int64[Tensor, "n"], Int64[Tensor, "n"]]],
    workers: int,
    *,
    pin_memory: bool = False,
) -> Iterator[Any]:
    """What `dataset.__getitems__` makes of each request, in the order of the requests: pixels and labels of a batch.

    Closing the iterator ends the workers. A picture that cannot be read raises a ValueError that names it. Torch's generator
    is left as it is.

    Args:
        dataset: where pictures come from: `StreamedImages`, or anything that makes a batch of a list of pairs.
        requests: for each batch the indices of its pictures and a key for each; may go on for ever. Some batches are taken from
            it ahead of time.
        workers: processes that decode, though no more than there are cores; 0 decodes in this one. A script that starts processes
            needs the usual `if __name__ == "__main__":`.
        pin_memory: give batches in pinned memory, for copies to a GPU that do not wait.
    """
    workers = min(arguments.whole("workers", workers, least=0), cores())
    loader = DataLoader(
        _Guarded(dataset),
        batch_sampler=_Sampler(requests),
        num_workers=workers,
        collate_fn=_as_is,
        pin_memory=pin_memory,
        worker_init_fn=_follow,
        multiprocessing_context=_context() if workers else None,
        prefetch_factor=2 if workers else None,
        generator=torch.Generator(),
    )
    iterator = iter(loader)
    try:
        for batch in iterator:
            if isinstance(batch, ValueError):
                raise batch
            yield batch
    finally:
        del iterator  # its end is that of the workers


def _context() -> Any:
    """How workers start: from a server that has imported this module, never as a copy of a process with threads and a GPU."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _follow(worker: int) -> None:
    """Ends this worker with the process that it works for, also where that is killed.

    DataLoader's own watch sees the server between the two, and that lives as long as its workers.
    """
    if (parent := multiprocessing.parent_process()) is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _as_is(batch: Any) -> Any:
    return batch


class _Sampler:
    """Requests as lists of pairs; a tensor would travel to a worker through shared memory."""

    def __init__(self, requests: Iterable[tuple[Tensor, Tensor]]) -> None:
        self.requests = requests

    def __iter__(self) -> Iterator[list[Request]]:
        for indices, keys in self.requests:
            yield list(zip(indices.tolist(), keys.tolist(), strict=True))


class _Guarded(Dataset[Any]):
    """Answers with the error instead of raising it: DataLoader would wrap it in a traceback from another process."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitems__(self, requests: list[Request]) -> Any:
        try:
            return self.dataset.__getitems__(requests)
        except ValueError as error:
            return error
