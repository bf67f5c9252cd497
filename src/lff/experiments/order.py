"""Which samples a step takes, as a function of the seed and the step alone: nothing has to be restored to go on with it."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lff.experiments.data import keys
from lff.experiments.problems import Problem
from lff.experiments.task import Request


class Order:
    """A new shuffle for every epoch; what is left of an epoch after its last whole batch is dropped.

    Args:
        samples: how many there are.
        batch: how many a step takes.
        seed: of the shuffles.
    """

    def __init__(self, samples: int, batch: int, seed: int) -> None:
        if samples < batch:
            raise Problem(f"--batch must be at most the number of training samples, {samples}, got {batch}")
        self.samples, self.batch, self.seed = samples, batch, seed
        self._epoch, self._shuffle = -1, torch.empty(0, dtype=torch.int64)

    def __call__(self, step: int) -> Tensor:
        """The samples of a step."""
        epoch, at = divmod(step, self.samples // self.batch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self._epoch, self._shuffle = epoch, torch.randperm(self.samples, generator=generator)
        return self._shuffle[at * self.batch : (at + 1) * self.batch]


def requests(order: Order, start: int, stop: int, parts: int, rank: int, size: int) -> Iterator[Request]:
    """What process `rank` of `size` takes in steps `start` to `stop`, each in `parts`.

    All parts of all processes together are the step's batch, whatever their number.
    """
    if order.batch % (parts * size):
        raise Problem(f"--batch must be a multiple of processes x --accumulate, {size} x {parts}, got {order.batch}")
    share = order.batch // (parts * size)
    for step in range(start, stop):
        indices, chance = order(step), keys(order.seed, step, order.batch)
        for part in range(parts):
            mine = slice((part * size + rank) * share, (part * size + rank + 1) * share)
            yield Request(indices[mine], chance[mine])
