"""Makes fashion.npz from the files of Fashion-MNIST: python -m lff.experiments.data.fashion.make SOURCE [TARGET].

SOURCE is the folder with the four files as published (train-images-idx3-ubyte.gz and so on).
"""

import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

CLASSES = 10
#: The first so many of each class, for each official split.
EACH = {"train": 1000, "test": 200}
PREFIX = {"train": "train", "test": "t10k"}


def make(source: Path, target: Path) -> None:
    """Writes the pictures of both splits and their labels; the same bytes every time."""
    arrays: dict[str, np.ndarray] = {}
    for split, each in EACH.items():
        pixels = _idx(source / f"{PREFIX[split]}-images-idx3-ubyte.gz")
        labels = _idx(source / f"{PREFIX[split]}-labels-idx1-ubyte.gz")
        chosen = np.sort(np.concatenate([np.flatnonzero(labels == label)[:each] for label in range(CLASSES)]))
        arrays |= {f"{split}_pixels": pixels[chosen], f"{split}_labels": labels[chosen]}
    # LZMA is 14 % smaller than the deflate of np.savez_compressed, and np.load reads both.
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, whenever it is made
            entry.create_system = 3  # and the same on Windows
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            archive.writestr(entry, content.getvalue(), zipfile.ZIP_LZMA)


def _idx(path: Path) -> UInt8[np.ndarray, "..."]:
    """The array of an idx file: two zeros, 8 for bytes, the number of axes, their sizes as four bytes each, the values."""
    content = gzip.decompress(path.read_bytes())
    axes = content[3]
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} must be an idx file of bytes, got one that starts with {content[:4].hex()}")
    shape = np.frombuffer(content, ">u4", axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    make(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).with_name("fashion.npz"))
