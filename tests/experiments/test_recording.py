"""Steps as a CUDA graph: the numbers of plain steps, also after a checkpoint, and up to a loss that is not finite."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from lff.experiments.engine import Engine, launch
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.task import World
from lff.experiments.tasks.detection import model
from lff.experiments.tasks.detection.config import METHODS, DetectionConfig, tiny
from lff.experiments.tasks.detection.task import Detection

GPU = pytest.mark.gpu


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DetectionConfig:
    """The small backbone, frozen, with weights from a file and features in a cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    host = model.DetrForObjectDetection(model.host_config(tiny(), 1))
    save_file(dict(host.model.backbone.model.state_dict()), tmp_path / "small.safetensors")
    return replace(tiny(), frozen=True, weights=tmp_path / "small.safetensors", scenes=(40, 4), steps=12, batch=8, groups=2)


def engine(config: DetectionConfig, device: str = "cuda", method: str = "Learnable-Fourier+MLP(kl=1.0)") -> Engine:
    return Engine(Detection(config, None), parse(method), 0, launch(device, "32"))


def trained(made: Engine, steps: int) -> list[float]:
    batches = made.batches()
    return [made.advance(batches).item() for _ in range(steps)]


@GPU
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", ["Learnable-Fourier+MLP(kl=1.0)", *METHODS])
def test_a_recorded_step_has_the_numbers_of_a_plain_one(config: DetectionConfig, method: str) -> None:
    losses, weights = {}, {}
    for how in ("layers", "step"):
        made = engine(replace(config, compile=how), method=method)
        losses[how] = trained(made, 12)
        weights[how] = {key: value.clone() for key, value in made.module.state_dict().items()}
    torch.testing.assert_close(losses["step"], losses["layers"], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(weights["step"], weights["layers"], rtol=1e-3, atol=1e-4)
    assert len(set(losses["step"])) == 12


@GPU
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_recorded_run_goes_on_from_its_checkpoint_with_the_same_numbers(config: DetectionConfig, dropout: float) -> None:
    config = replace(config, compile="step", dropout=dropout)
    near = partial(pytest.approx, rel=1e-5)  # sums of gradients on a GPU have no fixed order; another dropout is off by far more
    whole = trained(engine(config), 12)
    first = engine(config)
    assert trained(first, 6) == near(whole[:6])
    again = engine(config)
    again.restore(first.state())
    assert trained(again, 6) == near(whole[6:])


@GPU
@pytest.mark.filterwarnings("default")
def test_a_recorded_step_that_is_not_finite_leaves_the_weights_alone_and_says_which_it_was(config: DetectionConfig) -> None:
    made = engine(replace(config, compile="step"))
    trained(made, 7)
    with torch.no_grad():
        next(made.module.parameters()).fill_(float("inf"))
    before = {key: value.clone() for key, value in made.module.state_dict().items()}
    trained(made, 3)
    torch.testing.assert_close(dict(made.module.state_dict()), before, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(FloatingPointError, match="not finite at step 7"):
        made.check()


@pytest.mark.parametrize(("change", "said"), [({"frozen": False, "weights": None}, "wait for nothing of the processor's")])
def test_what_cannot_be_recorded_is_refused(config: DetectionConfig, change: dict[str, Any], said: str) -> None:
    with pytest.raises(Problem, match=said):
        engine(replace(config, compile="step", **change), "cpu")


def test_several_processes_cannot_record(config: DetectionConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lff.experiments.engine.world_of", lambda fabric: World(0, 2, torch.device("cpu"), lambda x: x))
    with pytest.raises(Problem, match="--compile step is for one process, got 2; take --compile layers"):
        engine(replace(config, compile="step"), "cpu")


@pytest.mark.compile
@pytest.mark.filterwarnings("default")  # torch's own
def test_on_a_cpu_only_its_layers_are_compiled(config: DetectionConfig) -> None:
    losses = [trained(engine(replace(config, compile=how), "cpu"), 3) for how in ("step", "no")]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-4)
