from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import tyro
from PIL import Image

import lff
from lff.experiments.data import centre_crop
from lff.experiments.engine import Engine, launch, world_of
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.tasks.classification import model as models
from lff.experiments.tasks.classification.config import METHODS, ClassificationConfig, demo, mini, paper, tiny
from lff.experiments.tasks.classification.few_shot import draw, few_shot
from lff.experiments.tasks.classification.task import Classification

pytestmark = [pytest.mark.plain, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def task() -> Classification:
    return Classification(replace(tiny(), scales=(1.5,)), None)


def folder(root: Path, count: int = 6, classes: int = 3) -> Path:
    generator = torch.Generator().manual_seed(0)
    for split in ("train", "val"):
        for label in range(classes):
            (root / split / f"{label}").mkdir(parents=True)
            for number in range(count):
                pixels = torch.randint(0, 256, (40, 48, 3), generator=generator, dtype=torch.uint8)
                Image.fromarray(pixels.numpy()).save(root / split / f"{label}" / f"{number}.png")
    return root


def test_the_papers_vit_has_its_parameters() -> None:
    with torch.device("meta"):
        model = models.build(paper(), parse("Embed-1D"), channels=3, classes=1000)
    assert sum(p.numel() for p in model.parameters()) == 86_567_656
    assert models.encoding_parameters(model) == 197 * 768


def test_the_papers_preset_trains_two_steps_with_its_batch_cut_down(tmp_path: Path) -> None:
    config = replace(paper(), batch=2, steps=2, warmup=1, precision="32", compile="no", loaders=0, scales=(), shots=1)
    task = Classification(config, folder(tmp_path, count=2, classes=2))
    engine = Engine(task, parse("Learnable-Fourier+MLP"), 0, launch("cpu", "32"))
    batches = engine.batches()
    losses = [engine.advance(batches).item() for _ in range(2)]
    engine.check()
    assert losses[0] == pytest.approx(10.0, abs=0.01)  # one class of two is right, and starts at sigmoid(-10)
    assert losses[1] != losses[0]
    assert config.rate_at(0) == pytest.approx(3e-3)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_and_is_asked_at_other_sizes(task: Classification, method: str) -> None:
    engine = Engine(task, parse(method), 0, launch("cpu", "32"))
    batches = engine.batches()
    before = {name: p.detach().clone() for name, p in engine.module.named_parameters()}
    for _ in range(2):
        engine.advance(batches)
    engine.check()
    moved = [name for name, p in engine.module.named_parameters() if not torch.equal(p, before[name])]
    assert any("position" in name for name in moved)
    found = engine.evaluate(task.final)
    asked = {entry["asked"] for entry in found["sizes"] if entry["scale"] == 1.5}
    tables, functions = {"interpolate"}, {"rescale", "extend", "interpolate"}
    wanted = (
        tables
        if method.startswith("Embed") or method.endswith("-1D")
        else {"rescale"}
        if method in ("none", "MLP")
        else functions
    )
    assert asked == wanted
    assert all(entry["size"] == [40, 40] for entry in found["sizes"] if entry["scale"] == 1.5)
    assert 0 <= found["top1"] <= found["top5"] <= 1
    assert found["sizes"][0]["top1"] == found["top1"]


def test_how_positions_are_asked_changes_the_answer_and_is_undone(task: Classification) -> None:
    torch.manual_seed(0)
    model = task.model(parse("Learnable-Fourier+MLP(gamma=1.0, scale=3.0)")).eval()
    torch.nn.init.normal_(model.classifier.weight)
    pixels = torch.randint(0, 256, (4, 1, 28, 28), dtype=torch.uint8)
    position = models.position(model)
    assert position is not None
    logits = {}
    for asked in ("rescale", "extend", "interpolate"):
        position.unseen = asked
        logits[asked] = task._forward(model, pixels, 40).logits
    position.unseen = "rescale"
    assert not torch.allclose(logits["rescale"], logits["extend"], atol=1e-3)
    assert not torch.allclose(logits["rescale"], logits["interpolate"], atol=1e-5)
    world = world_of(launch("cpu", "32"))
    losses = {asked: task._asked(model, world, 40, asked)["loss"] for asked in logits}
    assert len(set(losses.values())) == 3
    assert position.unseen == "rescale"


def test_methods_share_the_hosts_weights_at_one_seed(task: Classification) -> None:
    def host(method: str) -> dict[str, torch.Tensor]:
        torch.manual_seed(5)
        state = task.model(parse(method)).state_dict()
        return {name: value for name, value in state.items() if "position" not in name}

    own = host("Embed-1D")
    for method in ("Learnable-Fourier+MLP", "Sine-2D", "Embed-2D"):
        other = host(method)
        assert own.keys() == other.keys()
        assert all(torch.equal(own[name], other[name]) for name in own)


def test_the_hosts_table_is_shown_as_an_encoding(task: Classification) -> None:
    model = task.model(parse("Embed-1D"))
    encoding = task.encoding(model)
    rows = encoding(lff.grid((7, 7))).reshape(49, -1)
    torch.testing.assert_close(rows, model.vit.embeddings.position_embeddings[0, 1:].detach(), rtol=0, atol=0)
    assert task.encoding_parameters(model) == 50 * task.config.width


def test_pictures_are_split_by_class_and_never_shared() -> None:
    config = replace(demo(), develop=20, held=30)
    task = Classification(config, None)
    parts = task.parts
    everything = torch.cat([parts.train, parts.develop, parts.held])
    assert everything.sort().values.tolist() == list(range(10_000))
    for part, count in ((parts.develop, 20), (parts.held, 30), (parts.train, 950)):
        assert torch.bincount(parts.train_source.labels[part]).tolist() == [count] * 10
    assert [len(numbers) for _, numbers in parts.judged(config)] == [2000, 300]
    assert [len(numbers) for _, numbers in parts.judged(replace(config, judge="develop"))] == [200]
    with pytest.raises(Problem, match="must leave pictures of each class to train on: 1000 of 1000"):
        Classification(replace(config, develop=970), None)


def test_streaming_and_decoding_once_evaluate_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = folder(tmp_path / "data")
    config = replace(tiny(), image=32, develop=0, judge="test", scales=(), shots=2, batch=4, padding=2)
    found = []
    for stream in (False, True):
        task = Classification(replace(config, stream=stream, loaders=2 if stream else 0), root)
        engine = Engine(task, parse("Learnable-Fourier+MLP"), 0, launch("cpu", "32"))
        batches = engine.batches()
        losses = [engine.advance(batches).item() for _ in range(6)]
        batches.close()  # type: ignore[attr-defined]
        found.append((losses, engine.evaluate(task.evaluate)))
    assert found[0] == found[1]


def test_the_crop_recipe_is_evaluated_on_the_middle_of_a_larger_picture(tmp_path: Path) -> None:
    config = replace(tiny(), image=32, develop=0, judge="test", stream=True, loaders=0, crop=True)
    task = Classification(config, folder(tmp_path))
    ((source, numbers),) = task.parts.judged(config)
    pixels, _ = next(task._shown(source, numbers, world_of(launch("cpu", "32"))))
    with Image.open(tmp_path / "val" / "0" / "0.png") as picture:
        wanted = torch.from_numpy(np.array(centre_crop(picture, 32, round(32 * 256 / 224)))).permute(2, 0, 1)
    assert torch.equal(pixels[0], wanted)


def test_an_option_that_a_method_does_not_have_is_refused(task: Classification) -> None:
    with pytest.raises(Problem, match=r"Sine-2D\(hidden=3\) cannot be made"):
        task.model(parse("Sine-2D(hidden=3)"))


def test_few_shot_recognises_what_is_linear_and_not_noise() -> None:
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(4, 16, generator=generator)
    labels = torch.arange(4).repeat(50)
    features = centres[labels] + torch.randn(200, 16, generator=generator)
    few = draw(labels, 5, seed=0)
    assert torch.bincount(labels[few]).tolist() == [5] * 4
    assert few_shot(features[few], labels[few], features, labels) > 0.95
    noise = torch.randn(200, 16, generator=generator)
    assert few_shot(noise[few], labels[few], noise[100:], labels[100:]) < 0.5


def test_few_shot_is_the_ridge_regression_of_the_protocol() -> None:
    generator = torch.Generator().manual_seed(1)
    # Classes of unequal size, so that how much the constant is held back shows.
    x, labels = torch.randn(10, 3, generator=generator).double(), torch.tensor([0] * 7 + [1] * 3)
    test = torch.randn(40, 3, generator=generator).double()
    standard = (x - x.mean(0)) / (x.std(0, correction=0) + 1e-5)
    rows = torch.cat([standard, torch.full((10, 1), 100.0)], 1)
    # The ridge as rows of data: sqrt(2^10) times the identity, with targets of zero.
    augmented = torch.cat([rows, 32 * torch.eye(4).double()])
    targets = torch.cat([2 * torch.nn.functional.one_hot(labels, 2).double() - 1, torch.zeros(4, 2).double()])
    weights = torch.linalg.lstsq(augmented, targets).solution
    asked = torch.cat([(test - x.mean(0)) / (x.std(0, correction=0) + 1e-5), torch.full((40, 1), 100.0)], 1)
    wanted = (asked @ weights).argmax(1)
    assert few_shot(x, labels, test, wanted) == 1.0


def test_presets_are_what_their_tasks_say() -> None:
    for preset in Classification.presets.values():
        assert isinstance(preset(), ClassificationConfig)
        assert preset.__doc__
        assert "lff" in preset.__doc__
    assert len(mini().methods) >= 8
    assert (len(demo().methods), demo().seeds) == (4, 2)


@pytest.mark.parametrize("preset", Classification.presets)
def test_gamma_is_given_as_a_number_or_as_a_pair(preset: str) -> None:
    default = Classification.presets[preset]()

    def given(*words: str) -> ClassificationConfig:
        return tyro.cli(ClassificationConfig, default=default, args=words)

    assert given() == default
    assert given("--gamma", "8") == replace(default, gamma=8.0)
    assert given("--gamma", "1", "16") == replace(default, gamma=(1.0, 16.0))
