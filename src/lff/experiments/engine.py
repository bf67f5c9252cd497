"""One step of a run, on Lightning Fabric: one process or many, by `torchrun` or SLURM, without a change of code.

Everything random is a function of the seed and the step: the order of the data, its augmentation, the generator's state, the
learning rate. So a checkpoint holds the step, the weights and the optimiser, and a run that was killed ends as if it were not.
"""

import gc
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lff.encodings.fourier import FourierFeatures
from lff.encodings.regularizer import KLRegularizer
from lff.experiments.devices import find, moved
from lff.experiments.fabric import Fabric, LightningEnvironment
from lff.experiments.methods import Row
from lff.experiments.order import Order, requests
from lff.experiments.problems import Problem, plainly
from lff.experiments.recording import Recorded
from lff.experiments.task import Task, World


def launch(device: str, precision: str) -> Fabric:
    """Fabric for the processes that `torchrun` or SLURM started; one process where neither did.

    Args:
        device: "auto" (a GPU where there is one), "cpu" or "cuda".
        precision: "32" or "bf16".
    """
    for name in ("lightning_fabric", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)  # it would say on every start what was asked for
    kind = find(device).type
    started, local = processes(os.environ)
    fabric = Fabric(
        accelerator=kind,
        devices=local,
        num_nodes=started // local,
        strategy="ddp" if started > 1 else "auto",
        precision="bf16-mixed" if precision == "bf16" else "32-true",
        plugins=[LightningEnvironment()] if started == 1 else None,
    )
    fabric.launch()
    return fabric


def processes(variables: Mapping[str, str]) -> tuple[int, int]:
    """How many processes `torchrun` or `srun` started, in all and on this machine.

    Of SLURM the variables of a step: those of a job are there as well for a command that it runs alone.
    """
    if "LOCAL_WORLD_SIZE" in variables:
        return int(variables["WORLD_SIZE"]), int(variables["LOCAL_WORLD_SIZE"])
    if "SLURM_STEP_NUM_TASKS" in variables:  # "4(x2)" is four on each of two machines
        return int(variables["SLURM_STEP_NUM_TASKS"]), int(variables["SLURM_STEP_TASKS_PER_NODE"].partition("(")[0])
    return 1, 1


def leave() -> None:
    """Ends what several processes talk by.

    Gloo's threads hold Python objects. One that still lets go of such an object while Python ends aborts a process whose work is
    done; with what holds their group the threads are waited for.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
        gc.collect()


def world_of(fabric: Fabric) -> World:
    """The processes, as a task sees them."""

    def total(tensor: Tensor) -> Tensor:
        reduced = fabric.all_reduce(tensor, reduce_op="sum") if fabric.world_size > 1 else tensor
        assert isinstance(reduced, Tensor)
        return reduced

    return World(fabric.global_rank, fabric.world_size, fabric.device, total)


class Engine:
    """A run: a task, a method and a seed.

    Args:
        task: with its data read.
        row: the method.
        seed: decides the host's weights, the order of the data, and everything else that is random.
        fabric: launched.
    """

    def __init__(self, task: Task[Any], row: Row, seed: int, fabric: Fabric) -> None:
        self.task, self.row, self.seed, self.fabric, self.config = task, row, seed, fabric, task.config
        self.world = world_of(fabric)
        kl = row.options.get("kl", self.config.kl)
        torch.manual_seed(seed)
        with plainly():
            self.module = task.model(row.without_loss())
            learnable = any(isinstance(m, FourierFeatures) and m.learnable for m in self.module.modules())
            wanted = kl > 0 and (learnable or "kl" in row.options)
            self.module.to(self.world.device)
            self.regularizer = KLRegularizer(self.module).to(self.world.device) if wanted else None
        self.kl = kl
        groups = task.groups(self.module)
        if self.regularizer is not None:
            groups.append({"params": list(self.regularizer.parameters()), "weight_decay": 0.0})
        self.adam = torch.optim.AdamW(
            groups,
            lr=self.config.rate,
            betas=self.config.betas,
            eps=self.config.eps,
            weight_decay=self.config.weight_decay,
            fused=True,
            capturable=self._records,
        )
        if self.config.compile != "no":
            torch._dynamo.config.recompile_limit = 64  # several models of one class, each compiled, live in a process
            for part in task.layers(self.module) if self.config.compile in ("layers", "step") else [self.module]:
                part.compile(mode="reduce-overhead" if self.config.compile == "graphs" else None)
        self.model, self.optimizer = fabric.setup(self.module, self.adam)
        self.step = 0
        #: Set once a loss or a gradient was not finite; from then on the optimiser leaves the weights alone.
        self._failed = torch.zeros((), device=self.world.device)
        self._failed_at = torch.full((), -1, device=self.world.device)
        self.adam.found_inf = self._failed  # type: ignore[attr-defined]  # fused AdamW then leaves everything as it is
        #: The learning rate of each group, and the step: what changes from one replay of a recorded step to the next.
        self._now = torch.zeros(len(self.adam.param_groups) + 1, device=self.world.device)
        self._recorded = Recorded(self._all) if self._records else None
        self._reseed()

    @property
    def _records(self) -> bool:
        """Whether a step becomes a CUDA graph."""
        if self.config.compile != "step":
            return False
        if not self.task.recordable:
            raise Problem("--compile step is for tasks whose steps wait for nothing of the processor's, which this one's do")
        if self.world.size > 1:
            raise Problem(f"--compile step is for one process, got {self.world.size}; take --compile layers")
        return self.world.device.type == "cuda"

    def batches(self) -> Iterator[Any]:
        """The batches of this process, from the present step on."""
        order = Order(self.task.samples, self.config.batch, self.seed)
        wanted = requests(order, self.step, self.config.steps, self.config.accumulate, self.world.rank, self.world.size)
        return self.task.batches(wanted, self.world.device)

    def advance(self, batches: Iterator[Any]) -> Tensor:
        """One step of the optimiser; gives the loss, which nothing has waited for."""
        rates = [self.config.rate_at(self.step) * group.get("factor", 1.0) for group in self.adam.param_groups]
        self._now.copy_(moved(torch.tensor([*rates, self.step]), self.world.device))
        for group, rate, there in zip(self.adam.param_groups, rates, self._now, strict=False):
            group["lr"] = there if self._recorded is not None else rate
        self._reseed()
        parts = (self._next(batches) for _ in range(self.config.accumulate))
        total = self._all(parts) if self._recorded is None else self._recorded(list(parts))
        self.step += 1
        return total

    def _next(self, batches: Iterator[Any]) -> Any:
        with plainly():
            return next(batches)

    def _all(self, batches: Iterable[Any]) -> Tensor:
        """Everything of a step, on the device."""
        parts = self.config.accumulate
        total = torch.zeros((), device=self.world.device)
        for part, batch in enumerate(batches):
            with self.fabric.no_backward_sync(self.model, enabled=part < parts - 1):
                loss = self.task.loss(self.model, batch) / parts
                total = total + loss.detach()
                if self.regularizer is not None and part == parts - 1:
                    loss = loss + self.kl * self.regularizer()
                self.fabric.backward(loss)
        total = self.world.sum(total) / self.world.size
        norm = self.fabric.clip_gradients(
            self.model, self.optimizer, max_norm=self.config.clip or math.inf, error_if_nonfinite=False
        )
        assert isinstance(norm, Tensor)
        self.norm = norm
        failed = torch.maximum(self._failed, 1 - torch.isfinite(norm + total).float())
        self._failed_at.copy_(torch.where(failed > self._failed, self._now[-1].long(), self._failed_at))
        self._failed.copy_(failed)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def check(self) -> None:
        """Waits for the device, and raises where a step before was not finite."""
        at = int(self._failed_at.item())
        if at >= 0:
            self.step = at
            raise FloatingPointError(f"the loss or its gradient was not finite at step {at}")

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "step": self.step,
            "model": self.module.state_dict(),
            "optimizer": self.adam.state_dict(),
            "regularizer": self.regularizer.state_dict() if self.regularizer is not None else {},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on where a checkpoint was written."""
        self.module.load_state_dict(state["model"])
        self.adam.load_state_dict(state["optimizer"])
        if self.regularizer is not None:
            self.regularizer.load_state_dict(state["regularizer"])
        self.step = state["step"]
        self._recorded = Recorded(self._all) if self._records else None  # the optimiser's tensors are others

    @torch.no_grad()
    def evaluate(self, how: Callable[[nn.Module, World], dict[str, Any]]) -> dict[str, Any]:
        """`task.evaluate` or `task.final`, of the model as it is."""
        self.module.eval()
        with self.fabric.autocast(), torch.compiler.set_stance("force_eager"):  # no compilation for the sizes seen once
            found = how(self.module, self.world)
        self.module.train()
        return found

    def _reseed(self) -> None:
        shared = (self.seed * 1_000_003 + self.step) * 4099
        state = shared + self.world.rank
        self.task.alike(self.module, shared)
        torch.default_generator.manual_seed(state)
        if self.world.device.type == "cuda":
            torch.cuda.default_generators[self.world.device.index or 0].manual_seed(state)
