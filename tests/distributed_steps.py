"""Run by tests/test_distributed.py in two processes: training steps under DDP and FSDP2."""

import copy
import sys

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

import lff
from conftest import small
from lff.experiments.engine import leave


def ddp() -> None:
    """Every method: two steps, so that an unused parameter would be noticed, and gradients that are the mean over processes."""
    rank = distributed.get_rank()
    for name in lff.METHODS:
        encode, positions = small(name)
        grad = torch.randn(20, encode.depth)
        if not list(encode.parameters()):
            continue
        alone = copy.deepcopy(encode)
        (alone(positions) * grad).sum().div(2).backward()
        both = DistributedDataParallel(encode)
        for _ in range(2):
            both.zero_grad()
            mine = slice(rank * 10, rank * 10 + 10)
            (both(positions[mine]) * grad[mine]).sum().backward()
        for (key, ours), theirs in zip(encode.named_parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, msg=lambda m, key=key: f"{name} {key}: {m}")  # noqa: B023


def swapped() -> None:
    """A host with an encoding of ours: two steps, and the same gradients on both processes."""
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(image_size=16, patch_size=8, **sizes)
    encoding = lff.LearnableFourier(2, 32)
    model = lff.swap(transformers.ViTForImageClassification(config), encoding)
    both = DistributedDataParallel(model)
    for _ in range(2):
        both.zero_grad()
        both(torch.randn(2, 3, 16, 24)).logits.square().sum().backward()
    for name, parameter in encoding.named_parameters():
        gradients = [torch.empty_like(parameter.grad) for _ in range(2)]
        distributed.all_gather(gradients, parameter.grad)
        assert gradients[0].any(), name
        assert torch.equal(*gradients), name


class Model(nn.Module):
    def __init__(self, encode: lff.Encoding) -> None:
        super().__init__()
        self.encode, self.head = encode, nn.Linear(encode.depth, 3)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(positions))


def fsdp() -> None:
    """A bfloat16 model whose exact weights are shard groups of their own: the same outputs as unsharded, float32 frequencies."""
    positions, mesh = 1000 + torch.arange(40).reshape(20, 2), init_device_mesh("cpu", (2,))
    for encode in (lff.LearnableFourier(2, 32, layer_norm=True), lff.MLP(2, 32), lff.FourierFeatures(2, 32)):
        model = Model(encode).bfloat16()
        expected = model(positions).detach()
        for module in model.modules():
            if isinstance(module, lff.ExactEncoding):
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
        out = model(positions)
        torch.testing.assert_close(out, expected)
        out.sum().backward()
        for name, parameter in model.named_parameters():
            assert isinstance(parameter, DTensor)
            exact = name.split(".")[-1] in ("w_r", "w_1", "b_1")
            assert parameter.dtype == (torch.float32 if exact else torch.bfloat16), name
            assert parameter.grad is not None, name


def mixed() -> None:
    """A float32 model under a bfloat16 policy: exact weights in a float32 group, and integer positions, which FSDP leaves be."""
    positions, mesh = 1000 + torch.arange(40).reshape(20, 2), init_device_mesh("cpu", (2,))
    model = Model(lff.LearnableFourier(2, 32))
    expected = model(positions).detach()
    for module in model.modules():
        if isinstance(module, lff.ExactEncoding):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    out = model(positions)
    assert out.dtype == torch.bfloat16
    assert (out.float() - expected).norm() < 0.02 * (expected - expected.mean(0)).norm()
    out.sum().backward()


def boxes() -> None:
    """DETR's loss: images with seven objects here and one there count every object alike, as in one process."""
    from lff.experiments.tasks.detection.batch import padded
    from lff.experiments.tasks.detection.loss import Loss

    rank, counts, loss = distributed.get_rank(), (7, 1), Loss()
    corners = [torch.rand(n, 2, 2).sort(dim=1).values.reshape(n, 4) for n in counts]
    labels = [torch.randint(3, (n,)) for n in counts]
    logits, found = torch.randn(2, 2, 9, 4), torch.rand(2, 2, 9, 4) * 0.5 + 0.2
    mine = found[:, rank : rank + 1].requires_grad_()
    loss(logits[:, rank : rank + 1], mine, padded(corners[rank : rank + 1], labels[rank : rank + 1])).backward()
    gradients = [torch.empty_like(mine) for _ in range(2)]
    distributed.all_gather(gradients, mine.grad)
    distributed.destroy_process_group()  # from here on alone
    both = found.detach().clone().requires_grad_()
    loss(logits, both, padded(corners, labels)).backward()
    torch.testing.assert_close(torch.cat(gradients, 1) / 2, both.grad)  # the mean over processes, as DDP takes it


if __name__ == "__main__":
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    {"ddp": ddp, "swapped": swapped, "fsdp": fsdp, "mixed": mixed, "boxes": boxes}[sys.argv[1]]()
    leave()
