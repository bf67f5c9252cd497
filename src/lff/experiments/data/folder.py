"""An image folder decoded once: all its pictures in one tensor, kept on disk for the next start."""

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL
import torch
from jaxtyping import UInt8
from PIL import Image
from rich.console import Console
from rich.progress import Progress

import lff
from lff import arguments
from lff.experiments.data.images import Images
from lff.experiments.data.layout import Listing, listing
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
    workers = arguments.whole("workers", min(os.cpu_count() or 1, 8) if workers is None else workers)
    if size is not None:
        arguments.whole("size", size)
    files = listing(root, split)
    kept = None if cache is None else Path(cache) / f"{split}-{_key(files, size)}.npy"
    if kept is None or not kept.exists():
        first = _decode(files.paths[0], size)
        shape = (len(files.paths), *first.shape)
        chunks = _watched(_chunks(files.paths, first, size, workers), len(files.paths))
        with contextlib.closing(chunks):  # no thread goes on where writing fails
            if kept is None:
                return Images(torch.from_numpy(_joined(chunks, shape)), files.labels, files.classes)
            _write(chunks, shape, kept)
    # Mode "c", since torch warns of an array that may not be written to; what is written stays in memory.
    pixels = np.load(kept, mmap_mode="c", allow_pickle=False)
    return Images(torch.from_numpy(pixels), files.labels, files.classes)


def _key(files: Listing, size: int | None) -> str:
    """A digest of everything that decides the pixels, the versions of the code among it."""
    digest = hashlib.sha256(f"{lff.__version__} {PIL.__version__} {size}\n".encode())
    for path in files.paths:
        try:
            stat = os.stat(path)
        except OSError as error:
            raise ValueError(f"cannot read the picture {path}: {error.strerror}") from None
        digest.update(os.fsencode(os.path.abspath(path)) + f"\0{stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


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
