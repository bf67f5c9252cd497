"""What comes before and after the large kernels: the dense layers as these take them, and partial sums added up.

LayerNorm's affine part is taken up by the layer after it: W (weight * n + shift) + b = (W * weight) n + (W shift + b).
The rows of W * weight then lose their mean, which n, being without one, does not see: so that W r is W (r - mean).
"""

from typing import Any

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, cover, power_of_2
from lff.kernels.launch import Launch, remembered


def folded(w: Tensor, b: Tensor, weight: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """The new W and b in float32, in plain torch and differentiable."""
    w = w.float()
    b = b + (w * shift).sum(1)  # no matrix product, which autocast would round
    w = w * weight
    return w - w.mean(1, keepdim=True), b


def prepare(
    w_1: Tensor, b_1: Tensor, weight_1: Tensor | None, shift_1: Tensor | None, w_2: Tensor, b_2: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Both layers in one launch: W_1 and W_2 in the given dtype, b_1 in float32, and b_2 in three parts of that dtype, [D, 16].

    With LayerNorm the first is the new one.
    """
    (h, features), d = w_1.shape, w_2.shape[0]
    out_w_1, out_b_1 = w_1.new_empty(h, features, dtype=dtype), b_1.new_empty(h, dtype=torch.float32)
    out_w_2, out_b_2 = w_2.new_empty(d, h, dtype=dtype), b_2.new_empty(d, 16, dtype=dtype)
    norm = weight_1 is not None and shift_1 is not None
    affine = (weight_1, shift_1) if weight_1 is not None and shift_1 is not None else (b_1, b_1)
    given = [each.contiguous() for each in (w_1, b_1, *affine, w_2, b_2)]
    _prepare_launch(h, features, d, norm, dtype, w_1.device, *[each.dtype for each in given])(
        *given, out_w_1, out_b_1, out_w_2, out_b_2
    )
    return out_w_1, out_b_1, out_w_2, out_b_2


@remembered
def _prepare_launch(h: int, features: int, d: int, norm: bool, *same: Any) -> Launch:
    """`same`: dtypes and a device, by which launches differ."""
    from lff.kernels.fold_kernels import prepare

    block = BLOCKS["fold"]
    return Launch(
        prepare, (h + cover(d, block.rows),), d,
        H=h, F=features, NORM=norm, ROWS=block.rows, FEATURES=power_of_2(features), UNITS=power_of_2(h),
    )  # fmt: skip


def fold_grads(grad_w: Tensor, grad_b: Tensor, w: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """Gradients of W, weight and shift in a row, from those of the new W and b, both contiguous float32."""
    h, features = w.shape
    out = grad_w.new_empty(h * features + 2 * features)
    given = [each.contiguous() for each in (w, weight, shift)]
    launch = _fold_launch(h, features, w.device, *[each.dtype for each in given])
    launch(*given, grad_w, grad_b, grad_w.mean(1), out)
    return out


@remembered
def _fold_launch(h: int, features: int, *same: Any) -> Launch:
    from lff.kernels.fold_kernels import fold_backward

    block = BLOCKS["fold"]
    return Launch(fold_backward, (cover(features, block.freqs),), H=h, F=features, ROWS=block.rows, BLOCK=block.freqs)


def add_up(first: Tensor, second: Tensor, rows: Tensor, w_r: Tensor) -> Tensor:
    """Three sets of partial sums, each [shares, size], added up over their shares and put in a row, in one launch.

    The first ends with [m, freqs] and [freqs]: the former comes out as W_r is, [freqs, m]. The third may have many shares.
    """
    rows = rows if rows.shape[0] <= 1024 else rows.sum(0, keepdim=True)
    launch, size = _add_launch(first.shape, second.shape, rows.shape, w_r.shape, w_r.device)
    out = first.new_empty(size)
    launch(first, second, rows, out)
    return out


@remembered
def _add_launch(
    first: torch.Size, second: torch.Size, rows: torch.Size, w_r: torch.Size, device: torch.device
) -> tuple[Launch, int]:
    """With the size of the result."""
    from lff.kernels.fold_kernels import add_up

    del device  # launches differ by it
    (freqs, m), block, sizes = w_r, BLOCKS["add_up"], [each[1] for each in (first, second, rows)]
    launch = Launch(
        add_up, (sum(cover(size, block.freqs) for size in sizes),), first[0], second[0], rows[0], sizes[1], sizes[2],
        W_1=sizes[0] - (m + 1) * freqs, FREQS=freqs, M=m, ROWS=block.rows, BLOCK=block.freqs, **block.options(block.rows),
    )  # fmt: skip
    return launch, sum(sizes)
