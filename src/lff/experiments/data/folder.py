"""An image folder decoded once: all its pictures in one tensor, kept on disk for the next start."""

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL
import torch
from jaxtyping import UInt8
from PIL import Image
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

import lff
from lff import arguments
from lff.experiments.data.images import Images
from lff.experiments.data.layout import listing
from lff.experiments.data.picture import centre_crop, read, rgb

CHUNK = 64  # pictures that a thread decodes at a time
PATIENCE = 2.0  # seconds before a progress bar appears


def folder(
    root: str | Path, split: str, size: int | None = None, cache: str | Path | None = None, workers: int | None = None
) -> Images:
    """All pictures of an image folder, RGB; `lff.experiments.data.listing` says which layouts are read.

    Args:
        root: the folder that holds train/ and val/.
        split: "train" or "val".
        size: resize the short side to this and cut out the middle square. Without it all pictures must have one size.
        cache: a folder where decoded pictures are kept; the next start maps them into memory and decodes nothing. A change of
            any file's name, size or time makes a new file there. What is no longer used may be deleted.
        workers: threads that decode; by default as many as there are cores, 8 at most.
    """
    files = listing(root, split)
    return Images(decoded(files.paths, split, size, cache, workers), files.labels, files.classes)


def decoded(
    paths: Sequence[str], name: str, size: int | None = None, cache: str | Path | None = None, workers: int | None = None
) -> UInt8[Tensor, "n 3 height width"]:
    """The pictures of some files, RGB, in one tensor; the arguments are those of `folder`, `name` begins the cache's file."""
    workers = arguments.whole("workers", min(os.cpu_count() or 1, 8) if workers is None else workers)
    if size is not None:
        arguments.whole("size", size)

    def chunks() -> tuple[tuple[int, ...], Iterator[np.ndarray]]:
        first = _decode(paths[0], size)
        return (len(paths), *first.shape), _chunks(paths, first, size, workers)

    return kept(chunks, None if cache is None else Path(cache) / f"{name}-{digest(paths, size)}.npy")


def kept(
    chunks: Callable[[], tuple[tuple[int, ...], Iterator[np.ndarray]]], file: Path | None
) -> UInt8[Tensor, "n channels height width"]:
    """What the chunks are when joined, mapped from a file, which is written first where it is not there.

    Args:
        chunks: gives the shape of all, and the chunks in their order.
        file: where they are kept; None keeps them in memory.
    """
    if file is None or not file.exists():
        shape, found = chunks()
        with contextlib.closing(_watched(found, shape[0])) as watched:  # no thread goes on where writing fails
            if file is None:
                return torch.from_numpy(_joined(watched, shape))
            _write(watched, shape, file)
    # Mode "c", since torch warns of an array that may not be written to; what is written stays in memory.
    return torch.from_numpy(np.load(file, mmap_mode="c", allow_pickle=False))


def digest(paths: Sequence[str], size: int | None) -> str:
    """A digest of everything that decides the pixels, the versions of the code among it."""
    found = hashlib.sha256(f"{lff.__version__} {PIL.__version__} {size}\n".encode())
    for path in paths:
        try:
            stat = os.stat(path)
        except OSError as error:
            raise ValueError(f"cannot read the picture {path}: {error.strerror}") from None
        found.update(os.fsencode(os.path.abspath(path)) + f"\0{stat.st_size} {stat.st_mtime_ns}\n".encode())
    return found.hexdigest()[:32]


def _decode(path: str, size: int | None) -> UInt8[np.ndarray, "3 height width"]:
    def transform(image: Image.Image) -> Image.Image:
        return rgb(image) if size is None else centre_crop(image, size, size)

    return read(path, transform)


def _chunks(
    paths: Sequence[str], first: UInt8[np.ndarray, "3 height width"], size: int | None, workers: int
) -> Iterator[UInt8[np.ndarray, "chunk 3 height width"]]:
    """The decoded pictures in order. Threads do, since Pillow decodes and resizes without Python's lock."""

    def decode(start: int) -> UInt8[np.ndarray, "chunk 3 height width"]:
        pictures = []
        for path in paths[start : start + CHUNK]:
            picture = _decode(path, size)
            if picture.shape != first.shape:
                one, other = (f"{p.shape[2]} x {p.shape[1]}" for p in (first, picture))
                raise ValueError(
                    f"pictures must have one size where none to resize to is given:\n{paths[0]} has {one}, {path} has {other}"
                )
            pictures.append(picture)
        return np.stack(pictures)

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield from pool.map(decode, range(0, len(paths), CHUNK))
        finally:
            pool.shutdown(cancel_futures=True)


def _watched(chunks: Iterable[np.ndarray], total: int) -> Generator[np.ndarray, None, None]:
    """Passes chunks on, with a progress bar on stderr once it takes long."""
    progress = Progress(console=Console(stderr=True))
    task = progress.add_task(f"Decoding {total:,} pictures", total=total)
    started, begin = False, time.monotonic()
    try:
        for chunk in chunks:
            yield chunk
            progress.advance(task, len(chunk))
            if not started and time.monotonic() - begin > PATIENCE:
                progress.start()
                started = True
    finally:
        if started:
            progress.stop()


def _joined(chunks: Iterable[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    pixels, start = np.empty(shape, np.uint8), 0
    for chunk in chunks:
        pixels[start : start + len(chunk)] = chunk
        start += len(chunk)
    return pixels


def _write(chunks: Iterable[np.ndarray], shape: tuple[int, ...], target: Path) -> None:
    """Writes the pictures beside `target`, then gives them its name, so that the name never stands for half of them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{uuid.uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for chunk in chunks:
                file.write(chunk.tobytes())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
