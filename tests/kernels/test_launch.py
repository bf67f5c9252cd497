"""Launches after the first go to what Triton has compiled, with what it was compiled for, and only where that still serves."""

from typing import Any

import pytest
import torch
from algorithm import DEVICE, off, runs_kernels

import lff
from lff.kernels.launch import Launch

pytestmark = runs_kernels


class Kernel:
    """Stands for one that `triton.jit` has made: notes how it is launched, and gives something compiled, which notes it too."""

    arg_names = ("x", "out", "N", "WIDTH", "HEIGHT")

    def __init__(self) -> None:
        self.slow: list[Any] = []
        self.quick: list[Any] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, **options: Any) -> Any:
            self.slow.append((grid, arguments, options))
            return Compiled(self)

        return launch


class Compiled:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments: self.kernel.quick.append((grid, arguments))


def test_the_second_launch_has_addresses_numbers_and_constants_in_the_kernels_order() -> None:
    kernel, (x, out) = Kernel(), (torch.zeros(8), torch.zeros(8))
    launch = Launch(kernel, (3,), 8, HEIGHT=2, num_warps=4, WIDTH=5)
    launch(x, out)
    assert not kernel.quick
    ((grid, arguments, options),) = kernel.slow
    assert grid == (3, 1, 1)
    assert arguments[0] is x
    assert arguments[1] is out
    assert arguments[2] == 8
    assert options == {"HEIGHT": 2, "num_warps": 4, "WIDTH": 5}
    launch(out, x)
    assert len(kernel.slow) == 1
    assert kernel.quick == [((3, 1, 1), (out.data_ptr(), x.data_ptr(), 8, 5, 2))]


def test_a_tensor_at_an_odd_address_goes_by_triton() -> None:
    kernel, x = Kernel(), torch.zeros(9)
    launch = Launch(kernel, (1,), 8, WIDTH=1, HEIGHT=1)
    odd = x[1:]
    launch(odd, odd)
    launch(odd, odd)
    assert len(kernel.slow) == 2
    launch(x, x)  # what was compiled for odd addresses is not kept
    assert len(kernel.slow) == 3
    launch(x, x)
    launch(x, odd)
    assert (len(kernel.slow), len(kernel.quick)) == (4, 1)


@pytest.mark.parametrize("norm", [False, True])
def test_launches_repeat_on_other_tensors_addresses_and_dtypes(norm: bool) -> None:
    """Each setting twice, in turns: no launch may take what was compiled for another one."""
    encode = lff.LearnableFourier(3, 32, features=32, hidden=16, layer_norm=norm, impl="triton").to(DEVICE)
    exact = lff.LearnableFourier(3, 32, features=32, hidden=16, layer_norm=norm, impl="torch").double().to(DEVICE)
    exact.load_state_dict(encode.state_dict())
    for _ in range(2):
        for rows, offset, half in [(32, 0, False), (32, 1, False), (32, 0, True), (1, 0, False), (31, 3, True)]:
            held = torch.rand(3 * rows + offset, device=DEVICE) * 8
            x = held[offset:].reshape(rows, 3).requires_grad_()
            wanted = x.detach().double().requires_grad_()
            with torch.autocast(DEVICE, torch.bfloat16, enabled=half):
                found = encode(x)
            expected = exact(wanted)
            assert found.dtype == (torch.bfloat16 if half else torch.float32)
            assert off(found, expected) < (2e-2 if half else 1e-4)
            found.float().square().sum().backward()
            expected.square().sum().backward()
            assert off(x.grad, wanted.grad) < (5e-2 if half else 1e-3)
