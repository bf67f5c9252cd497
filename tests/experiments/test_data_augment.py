import itertools

import pytest
import torch
from torch import Tensor

from lff.experiments.data import augment, keys


def mixed(word: int) -> int:
    for shift, factor in ((16, 0x7FEB352D), (15, 0x2C1B3C6D), (13, 0x297A2D39)):
        word = (word ^ (word >> shift)) * factor % 2**32
    return word ^ (word >> 16)


def augmented_slowly(pixels: Tensor, chance: Tensor, padding: int) -> Tensor:
    """Picture by picture, pixel by pixel, in Python's integers."""
    out = torch.zeros_like(pixels)
    height, width = pixels.shape[2:]
    for i, key in enumerate(chance.tolist()):
        word = mixed(mixed(key % 2**32) ^ ((key >> 32) % 2**32))
        down, right, mirror = (mixed((word + j * 0x9E3779B9) % 2**32) for j in (1, 2, 3))
        down, right = (value * (2 * padding + 1) // 2**32 - padding for value in (down, right))
        for row, col in itertools.product(range(height), range(width)):
            to = width - 1 - col if mirror >= 2**31 else col
            if 0 <= row + down < height and 0 <= col + right < width:
                out[i, :, row, to] = pixels[i, :, row + down, col + right]
    return out


@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_augmenting_is_the_slow_loop(padding: int, dtype: torch.dtype) -> None:
    pixels = torch.randint(1, 256, (24, 2, 7, 5)).to(dtype)
    chance = torch.cat([keys(0, 0, 16), torch.tensor([0, 1, 2, -1, -2, 2**63 - 1, -(2**63), 2**32])])
    out = augment(pixels, chance, padding)
    assert out.dtype == dtype
    assert torch.equal(out, augmented_slowly(pixels, chance, padding))


@pytest.mark.parametrize(
    "chance", [keys(0, 0, 20000), torch.arange(20000), torch.arange(20000) << 32], ids=["mixed", "low", "high"]
)
def test_shifts_are_uniform_and_half_are_mirrored_also_for_consecutive_keys(chance: Tensor) -> None:
    # One bright pixel off the middle of 7 x 8 tells the shift and, by the parity of its column, the mirror.
    padding, pixels = 1, torch.zeros(20000, 1, 7, 8, dtype=torch.uint8)
    pixels[:, :, 3, 1] = 1
    place = augment(pixels, chance, padding).flatten(1).int().argmax(1)
    row, col = place // 8, place % 8
    mirrored = (col >= 4).long()
    col = torch.where(mirrored == 1, 7 - col, col)
    kind = (row - 2) * 6 + col * 2 + mirrored
    counts = torch.bincount(kind, minlength=18).double()
    assert counts.sum() == 20000
    assert len(counts) == 18
    # Chi square of 17 degrees of freedom: above 45 once in 4,000 cases. All 18 kinds alike means independence too.
    assert ((counts - 20000 / 18) ** 2 / (20000 / 18)).sum() < 45
    # Neighbours have nothing to do with each other.
    assert abs((mirrored[1:] == mirrored[:-1]).double().mean() - 0.5) < 0.015
    assert abs((row[1:] == row[:-1]).double().mean() - 1 / 3) < 0.015


def test_keys_are_a_function_of_seed_step_and_place() -> None:
    assert torch.equal(keys(3, 7, 10), keys(3, 7, 64)[:10])
    some = torch.cat([keys(seed, step, 50) for seed in (0, 1, 2, -1, 2**40) for step in (0, 1, 2, 10**6)])
    assert len(some.unique()) == len(some)
    assert keys(0, 0, 0).shape == (0,)


def test_every_bit_of_a_key_is_a_fair_coin() -> None:
    for drawn in (
        keys(0, 0, 4096),
        torch.cat([keys(0, step, 1) for step in range(4096)]),
        torch.cat([keys(s, 0, 1) for s in range(4096)]),
    ):
        bits = (drawn[:, None] >> torch.arange(64)) & 1
        assert (bits.double().mean(0) - 0.5).abs().max() < 0.04  # five standard deviations
        assert ((bits[1:] ^ bits[:-1]).double().mean(0) - 0.5).abs().max() < 0.04


@pytest.mark.compile
def test_augmenting_compiles_to_the_same() -> None:
    pixels, chance = torch.randint(0, 256, (16, 3, 8, 8), dtype=torch.uint8), keys(0, 0, 16)
    compiled = torch.compile(augment, fullgraph=True, backend="aot_eager")  # C++ takes a minute to compile
    assert torch.equal(compiled(pixels, chance, 2), augment(pixels, chance, 2))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_augmenting_is_the_same_on_a_gpu() -> None:
    pixels, chance = torch.randint(0, 256, (64, 3, 32, 32), dtype=torch.uint8), keys(0, 0, 64)
    expected = augment(pixels, chance, 4)
    there, key = pixels.cuda(), chance.cuda()
    torch.cuda.set_sync_debug_mode("error")  # nothing waits for the device
    try:
        out = augment(there, key, 4)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(out.cpu(), expected)


def test_padding_that_is_no_size_is_named() -> None:
    with pytest.raises(ValueError, match="padding must be a whole number of at least 0, got -1"):
        augment(torch.zeros(1, 1, 4, 4), torch.zeros(1, dtype=torch.int64), -1)
