import pytest
import torch

from lff.experiments.order import Order, requests
from lff.experiments.problems import Problem


def test_an_epoch_takes_every_sample_once_and_the_next_in_another_order() -> None:
    order = Order(20, 5, seed=1)
    epochs = [torch.cat([order(step) for step in range(4 * epoch, 4 * epoch + 4)]).tolist() for epoch in (0, 1)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(20))
    assert epochs[0] != epochs[1]


def test_a_step_is_the_same_wherever_one_begins() -> None:
    assert Order(20, 6, seed=3)(7).tolist() == [Order(20, 6, seed=3)(step) for step in range(8)][7].tolist()


@pytest.mark.parametrize(("parts", "size"), [(1, 1), (2, 1), (1, 4), (2, 2)])
def test_the_parts_of_all_processes_are_the_batch(parts: int, size: int) -> None:
    order = Order(64, 8, seed=0)
    taken = [list(requests(order, 5, 7, parts, rank, size)) for rank in range(size)]
    for step in (0, 1):
        of_step = [taken[rank][step * parts + part] for part in range(parts) for rank in range(size)]
        assert torch.cat([request.indices for request in of_step]).tolist() == order(5 + step).tolist()
        assert len(set(torch.cat([request.keys for request in of_step]).tolist())) == 8


def test_a_batch_that_cannot_be_shared_or_filled_is_refused() -> None:
    with pytest.raises(Problem, match="multiple of processes x --accumulate, 3 x 1, got 8"):
        list(requests(Order(64, 8, 0), 0, 1, 1, 0, 3))
    with pytest.raises(Problem, match="at most the number of training samples, 4, got 8"):
        Order(4, 8, 0)
