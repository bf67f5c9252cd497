"""The dense layers as the kernels take them.

LayerNorm's affine part is taken up by the layer after it: W (weight * n + shift) + b = (W * weight) n + (W shift + b).
The rows of W * weight then lose their mean, which n, being without one, does not see: so that W r is W (r - mean).
"""

import torch
from torch import Tensor

from lff.kernels.blocks import BLOCKS, cover, power_of_2
from lff.kernels.serving import on


def folded(w: Tensor, b: Tensor, weight: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """The new W and b in float32, in plain torch and differentiable."""
    w = w.float()
    b = b + (w * shift).sum(1)  # no matrix product, which autocast would round
    w = w * weight
    return w - w.mean(1, keepdim=True), b


def fold(w: Tensor, b: Tensor, weight: Tensor | None, shift: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The new W in the given dtype and b in float32, in one launch; without a LayerNorm, the old ones."""
    w, b = w.contiguous(), b.float().contiguous()
    if weight is None or shift is None:
        return w.to(dtype), b
    from lff.kernels.fold_kernels import fold_forward

    out_w, out_b = w.new_empty(w.shape, dtype=dtype), torch.empty_like(b)
    h, features = w.shape
    with on(w):
        fold_forward[(h,)](
            w, b, weight.float().contiguous(), shift.float().contiguous(), out_w, out_b, features, power_of_2(features)
        )
    return out_w, out_b


def second_ready(w: Tensor, b: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """W of the second layer in the given dtype, [D, H], and its bias in three parts of that dtype, [D, 16], in one launch."""
    from lff.kernels import fold_kernels

    (d, h), block = w.shape, BLOCKS["fold"]
    out_w, out_b = w.new_empty(d, h, dtype=dtype), b.new_empty(d, 16, dtype=dtype)
    with on(w):
        fold_kernels.second_ready[(cover(d, block.rows),)](
            w.contiguous(), b.contiguous(), out_w, out_b, d, h, block.rows, power_of_2(h)
        )
    return out_w, out_b


def fold_grads(grad_w: Tensor, grad_b: Tensor, w: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """Gradients of W, weight and shift in a row, from those of the new W and b, both contiguous float32."""
    from lff.kernels.fold_kernels import fold_backward

    h, features = w.shape
    block, out = BLOCKS["fold"], grad_w.new_empty(h * features + 2 * features)
    with on(w):
        fold_backward[(cover(features, block.freqs),)](
            w.contiguous(), weight.float().contiguous(), shift.float().contiguous(), grad_w, grad_b, grad_w.mean(1), out,
            h, features, block.rows, block.freqs,
        )  # fmt: skip
    return out
