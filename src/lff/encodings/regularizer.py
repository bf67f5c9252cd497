"""The regulariser of the appendix (Eq. 10): W_r is drawn towards a Gaussian around zero."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lff.encodings.fourier import FourierFeatures


class KLRegularizer(nn.Module):
    """Eq. 10, summed over the learnable Fourier features of a model; Eq. 11 is the caller's `loss + alpha * kl()`.

    L = -1/2 (1 - log s + log v - (v + mu^2) / s), where mu and v are the mean and variance of all weights of one W_r, and s is
    its target variance, learnable too: it starts at gamma^-2 and stays positive, being kept as a logarithm. Give
    `kl.parameters()` to the optimiser beside the model's; an encoding without a regulariser has no parameter for it.

    What it does, since s is free: at the best s = v + mu^2 the loss is log(1 + mu^2 / v) / 2, so it only draws the mean to zero.
    It leaves the spread alone, and as mu and v are taken over all coordinates together it cannot make W_r isotropic
    (docs/errata.md, P15).

    Args:
        model: searched for `FourierFeatures` with a learnable W_r; held by reference, not as a submodule.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        # In a tuple, so that the model's parameters do not become the regulariser's as well.
        self._features = tuple(m for m in model.modules() if isinstance(m, FourierFeatures) and m.learnable)
        if not self._features:
            raise ValueError(f"model must contain learnable FourierFeatures, got a {type(model).__name__} without any")
        if any(f.w_r.numel() < 2 for f in self._features):
            raise ValueError("model must have at least two weights in every W_r for their variance to exist, got one with one")
        variances = torch.tensor([f.variance for f in self._features])
        self.log_target = nn.Parameter(variances.log().to(self._features[0].w_r.device))

    def forward(self) -> Float[Tensor, ""]:
        kl = [self._divergence(f.w_r, log_s) for f, log_s in zip(self._features, self.log_target, strict=True)]
        return torch.stack(kl).sum()

    @staticmethod
    def _divergence(w_r: Float[Tensor, "freqs m"], log_s: Float[Tensor, ""]) -> Float[Tensor, ""]:
        mu, v = w_r.mean(), w_r.var(correction=0)
        return -0.5 * (1 - log_s + v.log() - (v + mu.square()) * torch.exp(-log_s))
