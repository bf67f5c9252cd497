"""The pictures of a run as sequences of tokens: pixels row by row, the colours of each in turn."""

from pathlib import Path

import torch
from einops import rearrange
from jaxtyping import Int64, UInt8
from torch import Tensor

from lff.experiments import data
from lff.experiments.devices import moved

ON_DEVICE = 4 * 2**30  # bytes up to which pictures are kept on a GPU


def tokens(pixels: UInt8[Tensor, "b channels height width"]) -> Int64[Tensor, "b n"]:
    """Values in raster order."""
    return rearrange(pixels, "b rgb h w -> b (h w rgb)").long()


def untoken(ids: Int64[Tensor, "b n"], size: int) -> UInt8[Tensor, "b channels {size} {size}"]:
    """The picture of a sequence."""
    return rearrange(ids, "b (h w rgb) -> b rgb h w", h=size, w=size).to(torch.uint8)


class Pictures:
    """Decoded once; on the device where they fit, otherwise where they are mapped from, and copied batch by batch.

    Args:
        pixels: all pictures of a split.
    """

    def __init__(self, pixels: UInt8[Tensor, "n channels size size"]) -> None:
        self.pixels = pixels

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def channels(self) -> int:
        return self.pixels.shape[1]

    def batch(self, indices: Int64[Tensor, " b"], device: torch.device) -> Int64[Tensor, "b n"]:
        """Some pictures as tokens, on the device."""
        if device.type == "cuda" and self.pixels.device != device and self.pixels.numel() <= ON_DEVICE:
            self.pixels = self.pixels.to(device)
        if self.pixels.device == device and device.type == "cuda":
            return tokens(self.pixels[moved(indices, device)])
        return tokens(moved(self.pixels[indices], device))


def read(folder: Path | None, split: str, size: int) -> Pictures:
    """The pictures of "train" or "val": of a folder, or the garments inside the package."""
    if folder is None:
        return Pictures(data.embedded("train" if split == "train" else "test", size).pixels)
    return Pictures(data.downsampled(folder, split, size, Path.home() / ".cache" / "lff"))
