import math

import pytest
import torch
from torch import nn

import lff


def _model(gamma: float = 2.0) -> nn.Module:
    return nn.ModuleDict({"encode": lff.LearnableFourier(2, 64, gamma=gamma), "head": nn.Linear(64, 3)})


def _w_r(model: nn.Module) -> nn.Parameter:
    return model["encode"].encoder.features.w_r


@pytest.mark.parametrize("gamma", [0.5, 1.0, 100.0])
def test_it_is_the_divergence_between_two_gaussians(gamma: float) -> None:
    """Eq. 10 is KL(N(mu, v) || N(0, s)), with s = gamma^-2 at the start."""
    model = _model(gamma)
    with torch.no_grad():
        _w_r(model).add_(0.3 / gamma)
    w = _w_r(model)
    fitted = torch.distributions.Normal(w.mean(), w.std(correction=0))
    expected = torch.distributions.kl_divergence(fitted, torch.distributions.Normal(0.0, 1 / gamma))
    torch.testing.assert_close(lff.KLRegularizer(model)(), expected)


def test_with_a_range_of_gammas_the_target_starts_at_their_mean_variance() -> None:
    features = lff.FourierFeatures(2, 64, gamma=(1.0, 16.0))
    assert lff.KLRegularizer(features).log_target.exp().item() == pytest.approx(features.variance)
    assert lff.LearnableFourier(2, 64, gamma=(1.0, 16.0)).encoder.features.gamma == (1.0, 16.0)


def test_targets_are_learnable_positive_and_not_the_models() -> None:
    model = _model()
    kl = lff.KLRegularizer(model)
    assert [name for name, _ in kl.named_parameters()] == ["log_target"]
    assert kl.log_target.exp().item() == pytest.approx(1 / 4)
    assert not {id(p) for p in kl.parameters()} & {id(p) for p in model.parameters()}
    optimiser = torch.optim.SGD(kl.parameters(), lr=10.0)
    for _ in range(5):
        optimiser.zero_grad()
        kl().backward()
        optimiser.step()
        assert kl.log_target.exp() > 0


def test_with_the_target_free_it_only_draws_the_mean_to_zero() -> None:
    """docs/errata.md, P15: at the best target the loss is log(1 + mu^2 / v) / 2, whatever the spread."""
    model = _model()
    with torch.no_grad():
        _w_r(model).mul_(7.0).add_(0.5)
    kl, w = lff.KLRegularizer(model), _w_r(model)
    mu, v = w.mean(), w.var(correction=0)
    with torch.no_grad():
        kl.log_target.fill_(math.log(v + mu**2))
    loss = kl()
    torch.testing.assert_close(loss, 0.5 * torch.log1p(mu**2 / v))
    (slope,) = torch.autograd.grad(loss, kl.log_target)
    assert slope.item() == pytest.approx(0, abs=1e-6)  # so it is the best target
    with torch.no_grad():
        _w_r(model).sub_(mu)  # mean zero, seven times the spread that gamma asks for: nothing left to pay
        kl.log_target.fill_(math.log(v))
    assert kl().item() == pytest.approx(0, abs=1e-6)


def test_it_cannot_see_anisotropy() -> None:
    """docs/errata.md, P15: W_r with all its spread on one axis costs nothing."""
    model = _model()
    with torch.no_grad():
        _w_r(model)[:, 0] = torch.linspace(-3, 3, len(_w_r(model)))
        _w_r(model)[:, 1] = 0.0
    kl = lff.KLRegularizer(model)
    with torch.no_grad():
        kl.log_target.fill_(_w_r(model).var(correction=0).log())
    assert kl().item() == pytest.approx(0, abs=1e-6)


def test_training_with_it_centres_the_frequencies() -> None:
    model = _model()
    with torch.no_grad():
        _w_r(model).add_(1.0)
    kl = lff.KLRegularizer(model)
    optimiser = torch.optim.Adam([*model.parameters(), *kl.parameters()], lr=0.05)
    for _ in range(100):
        optimiser.zero_grad()
        kl().backward()
        optimiser.step()
    assert abs(_w_r(model).mean()) < 0.05


def test_it_sums_over_all_learnable_features_of_a_model() -> None:
    parts = nn.ModuleList([lff.LearnableFourier(2, 8, gamma=g) for g in (1.0, 3.0)])
    parts.append(lff.FourierFeatures(2, 8, learnable=False))
    kl = lff.KLRegularizer(parts)
    assert kl.log_target.exp().tolist() == pytest.approx([1.0, 1 / 9])
    torch.testing.assert_close(kl(), sum(lff.KLRegularizer(part)() for part in parts[:2]))


def test_a_model_without_learnable_features_is_refused() -> None:
    for model in (nn.Linear(2, 3), lff.FourierFeatures(2, 8, learnable=False), lff.MLP(2, 8)):
        with pytest.raises(ValueError, match=f"model must contain learnable FourierFeatures, got a {type(model).__name__}"):
            lff.KLRegularizer(model)
    with pytest.raises(ValueError, match="at least two weights in every W_r"):
        lff.KLRegularizer(lff.FourierFeatures(1, 2))
