"""Makes an encoding reproduce a table, so that a trained model keeps what it has learned and is free of its size."""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float, Num
from torch import Tensor, nn

from lff import arguments
from lff.encodings.embedding import Embed
from lff.encodings.encoding import Encoding
from lff.encodings.groups import Flattened, Grouped
from lff.encodings.mlp import MLP
from lff.encodings.modulated import Dense, Modulated
from lff.positions import raster

ENOUGH = 1e-3  # the error at which a closed form is left as it is


class Fit(NamedTuple):
    """What a fit has left: norms of (encoding - table) over the norm of (table - its mean over positions)."""

    #: After the last dense layer alone was solved for; None for an encoding without one.
    closed: float | None
    #: At the end, by the encoding in its own dtype.
    error: float


def fit(
    encoding: Encoding,
    positions: Num[Tensor, "*batch coords"],
    table: Float[Tensor, "*batch depth"],
    *,
    steps: int = 100,
    ridge: float = 1e-6,
) -> Fit:
    """Changes an encoding in place so that `encoding(positions)` is as near to `table` as it can be, in least squares.

    Where the encoding ends in a dense layer, that layer is solved for in closed form, and goes on being so while the weights
    before it take quasi-Newton steps: they follow the error that the best last layer leaves, unless it is below 1e-3 already.
    Other encodings take the steps alone. All in float64. How far the error can fall depends on `hidden`: a table of rank r
    wants as many hidden units.

    Args:
        encoding: to be fitted; its dtype, device and mode stay.
        positions: where the table's rows are.
        table: what the encoding should give there.
        steps: quasi-Newton steps at most; 0 leaves the features as they are.
        ridge: how much the last layer is held back, relative to what it is given.
    """
    if positions.shape[:-1] != table.shape[:-1] or table.shape[-1] != encoding.depth:
        raise ValueError(
            f"table must have shape {(*positions.shape[:-1], encoding.depth)}, a row for each position, got {tuple(table.shape)}"
        )
    if not table.isfinite().all():
        raise ValueError("table must be finite, got one with nan or inf")
    if not any(p.requires_grad for p in encoding.parameters()):
        raise ValueError(f"encoding must have something to learn, got a {type(encoding).__name__} without learnable parameters")
    arguments.whole("steps", steps, least=0)
    arguments.positive("ridge", ridge)
    closed = None
    with torch.inference_mode(False), torch.enable_grad():
        # Copies, since what was made in inference mode cannot be differentiated.
        x, target = (
            rearrange(positions.clone(), "... c -> (...) c"),
            rearrange(table.detach().clone(), "... d -> (...) d").double(),
        )
        exact = copy.deepcopy(encoding).double().eval()
        exact.impl = "torch"  # the kernels have no float64
        last = _last(exact)
        if last is not None:
            closed = _project(exact, last, x, target, steps, ridge)
        elif not _look_up(exact, x, target):
            _descend(list(exact.parameters()), lambda: (exact(x) - target).square().sum() / target.square().sum(), steps)
    with torch.no_grad():
        for ours, found in zip(encoding.parameters(), exact.parameters(), strict=True):
            ours.copy_(found)
        mode = encoding.training
        error = _error(encoding.eval()(x), target)
        encoding.train(mode)
    return Fit(closed, error)


def _project(exact: Encoding, last: nn.Linear, x: Tensor, target: Tensor, steps: int, ridge: float) -> float:
    """Solves for the last layer, and moves what is before it along the error that this leaves; the error without the moves."""
    rows = rearrange(target, "n (g d) -> (n g) d", d=last.out_features)
    weight, bias = last.weight, last.bias
    others = [p for p in exact.parameters() if p is not weight and p is not bias and p.requires_grad]
    caught: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))

    def solve() -> tuple[Tensor, Tensor]:
        caught.clear()
        exact(x)
        h = rearrange(caught[0], "... h -> (...) h")
        h = torch.cat([h, torch.ones_like(h[:, :1])], dim=1)
        gram = h.T @ h
        solution = torch.linalg.solve(
            gram + ridge * gram.diagonal().mean() * torch.eye(len(gram), dtype=h.dtype, device=h.device), h.T @ rows
        )
        return solution, (h @ solution - rows).square().sum() / (rows - rows.mean(0)).square().sum()

    with torch.no_grad():
        closed = solve()[1].sqrt().item()
    if others and closed > ENOUGH:
        _descend(others, lambda: solve()[1], steps)
    with torch.no_grad():
        solution, _ = solve()
        weight.copy_(solution[:-1].T)
        bias.copy_(solution[-1])
    hook.remove()
    return closed


def _look_up(exact: Encoding, x: Tensor, target: Tensor) -> bool:
    """A table with one row a cell takes the target's rows as they are; False where the encoding is none."""
    if not (isinstance(exact, Embed) and exact.join == "cell"):
        return False

    with torch.no_grad():
        exact.tables[0][raster(x, exact.extent)[:, 0]] = target
    return True


def _descend(parameters: list[nn.Parameter], loss: Callable[[], Tensor], steps: int) -> None:
    """Quasi-Newton steps with a line search."""
    if not steps:
        return
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=steps, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=1e-12, tolerance_change=1e-12
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]


def _last(encoding: Encoding) -> nn.Linear | None:
    """The dense layer that an encoding ends in."""
    while isinstance(encoding, Grouped | Flattened):
        encoding = encoding.encoder
    if isinstance(encoding, Modulated | MLP):
        return encoding.dense_2
    return encoding.dense if isinstance(encoding, Dense) else None


def _error(output: Tensor, target: Tensor) -> float:
    return float((output.double() - target).norm() / (target - target.mean(0)).norm())
