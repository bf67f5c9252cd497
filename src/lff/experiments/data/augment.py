"""Shifts and mirror images of pictures that are tensors, decided by integers alone, so alike on every device.

n pictures; a key is a 64-bit integer for each. Its bits are mixed in words of 32, since products of those fit the 64 bits of
torch's largest integer, and nothing depends on what an overflow does.
"""

import numpy as np
import torch
from jaxtyping import Float64, Int64, Shaped, UInt64
from torch import Tensor
from torch.nn import functional

from lff import arguments

WORD = 2**32 - 1
LONG = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: steps of it fill the range evenly


def keys(seed: int, step: int, count: int) -> Int64[Tensor, "{count}"]:
    """A key for each place in a batch, as a function of the seed, the step and the place alone.

    Processes that share a batch each take their part of the keys of all of it.
    """
    arguments.whole("count", count, least=0)
    start = np.array([seed & LONG], np.uint64)
    start = _mixed_long(_mixed_long(start + np.uint64(GOLDEN)) + np.array([step & LONG], np.uint64))
    places = np.arange(1, count + 1, dtype=np.uint64)
    return torch.from_numpy(_mixed_long(start + places * np.uint64(GOLDEN)).view(np.int64))


def augment(
    pixels: Shaped[Tensor, "n channels height width"], keys: Int64[Tensor, "n"], padding: int
) -> Shaped[Tensor, "n channels height width"]:
    """Each picture moved by up to `padding` pixels down or up and right or left, zeros coming in, and mirrored or not.

    Every one of the (2 padding + 1)^2 shifts, with and without the mirror, is as likely. A key decides that of its picture.
    """
    arguments.whole("padding", padding, least=0)
    n, channels, height, width = pixels.shape
    word = _mixed(_mixed(keys & WORD) ^ (keys >> 32 & WORD))
    down, right, mirrored = (_mixed(word + i * 0x9E3779B9 & WORD) for i in (1, 2, 3))
    # A word over 2^32 is uniform in [0, 1).
    down, right = (values * (2 * padding + 1) >> 32 for values in (down, right))
    across = torch.arange(width, device=pixels.device)
    across = torch.where((mirrored >> 31 == 1)[:, None], width - 1 - across, across)
    rows = torch.arange(height, device=pixels.device) + down[:, None]
    cols = across + right[:, None]
    padded = functional.pad(pixels, (padding,) * 4)
    picture = torch.arange(n, device=pixels.device)[:, None, None, None]
    channel = torch.arange(channels, device=pixels.device)[:, None, None]
    return padded[picture, channel, rows[:, None, :, None], cols[:, None, None, :]]


def uniforms(keys: Int64[Tensor, "n"], count: int) -> Float64[np.ndarray, "n {count}"]:
    """Numbers from [0, 1) for each key, as many as are asked for, decided by it alone."""
    steps = np.arange(1, arguments.whole("count", count) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    words = _mixed_long(keys.numpy().view(np.uint64)[:, None] + steps)
    numbers: np.ndarray = (words >> np.uint64(11)) * 2.0**-53  # the 53 bits that a float64 has
    return numbers


def _mixed(word: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
    """A permutation of the 32-bit words that leaves no pattern: shifts and products in turn."""
    word = (word ^ word >> 16) * 0x7FEB352D & WORD
    word = (word ^ word >> 15) * 0x2C1B3C6D & WORD
    word = (word ^ word >> 13) * 0x297A2D39 & WORD
    return word ^ word >> 16


def _mixed_long(values: UInt64[np.ndarray, "*n"]) -> UInt64[np.ndarray, "*n"]:
    """The output function of SplitMix64 (Steele et al., OOPSLA 2014), on unsigned integers, which wrap around."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = values ^ values >> np.uint64(31)
    return mixed
