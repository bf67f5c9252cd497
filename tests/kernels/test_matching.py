"""The assignment on a GPU against SciPy's, on the CPU in Triton's interpreter, and on a GPU where there is one."""

import pytest
import torch
from algorithm import DEVICE, runs_kernels
from torch import Tensor

from lff.experiments.tasks.detection import matching, matching_kernel

pytestmark = runs_kernels


def total(cost: Tensor, found: Tensor) -> Tensor:
    """What an assignment costs, by layer and image, in float64."""
    each = cost.double().gather(2, found.clamp(min=0)[:, :, None, :])[:, :, 0]
    return torch.where(found >= 0, each, 0.0).sum(-1)


# More queries, more objects, as many, one; 40 objects are no power of two; of 70 columns there are more than a warp has threads.
@pytest.mark.parametrize(("queries", "objects"), [(7, 3), (3, 6), (5, 5), (1, 1), (25, 40), (70, 9)])
def test_the_kernel_finds_what_scipy_finds(queries: int, objects: int) -> None:
    cost = torch.randn(2, 3, queries, objects)
    real = torch.rand(3, objects) < 0.7
    real[0] = True
    real[1] = False
    found = matching_kernel.assign(cost.to(DEVICE), real.to(DEVICE)).cpu()
    assert torch.equal(found, matching.assign(cost, real))


def test_equal_costs_are_assigned_as_cheaply() -> None:
    cost = torch.randint(4, (3, 4, 12, 10)).float()
    real = torch.ones(4, 10, dtype=torch.bool)
    found = matching_kernel.assign(cost.to(DEVICE), real.to(DEVICE)).cpu()
    assert torch.equal(total(cost, found), total(cost, matching.assign(cost, real)))
    assert all(len(set(row.tolist())) == 10 for row in found.flatten(0, 1))


def test_costs_of_any_size_are_assigned_exactly() -> None:
    cost = torch.randn(1, 4, 20, 15) + torch.tensor([0.0, 1e3, -1e3, 1e6])[:, None, None]
    cost[0, 0, :5] = 1e6  # as what is not finite counts
    real = torch.ones(4, 15, dtype=torch.bool)
    found = matching_kernel.assign(cost.to(DEVICE), real.to(DEVICE)).cpu()
    torch.testing.assert_close(total(cost, found), total(cost, matching.assign(cost, real)), rtol=1e-12, atol=0.0)


def test_nothing_to_assign_is_no_error() -> None:
    found = matching_kernel.assign(torch.rand(2, 0, 3, 4, device=DEVICE), torch.ones(0, 4, dtype=torch.bool, device=DEVICE))
    assert found.shape == (2, 0, 4)
