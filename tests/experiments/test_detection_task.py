"""The task as a whole: trains, resumes, learns, is judged at every size, and finds things in pictures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from lff.experiments.display import Display
from lff.experiments.engine import Engine, launch, world_of
from lff.experiments.folder import WEIGHTS, RunFolder
from lff.experiments.methods import parse
from lff.experiments.problems import Problem
from lff.experiments.task import World
from lff.experiments.tasks.detection import detect, evaluation
from lff.experiments.tasks.detection.config import DetectionConfig, mini, mini_start, mini_unseen, paper, paper_unseen, tiny
from lff.experiments.tasks.detection.task import Detection, detections
from lff.experiments.training import run_config, train

METHOD = "Learnable-Fourier+MLP"


def trained(config: DetectionConfig, folder: Path, method: str = METHOD) -> dict[str, Any]:
    task = Detection(config, None)
    engine = Engine(task, parse(method), 0, launch("cpu", "32"))
    train(engine, RunFolder(folder, run_config(task, "detection", parse(method), 0)), Display("", silent=True))
    found: dict[str, Any] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return found


def test_every_row_of_the_papers_three_tables_has_its_numbers() -> None:
    measures = {measure.key for measure in Detection.measures}
    for preset in (mini(), mini_unseen(), mini_start()):
        paper = Detection.published(preset)
        assert set(preset.methods) - {"Learnable-Fourier+MLP(kl=1.0)"} <= set(paper)
        assert all(set(numbers) == measures for numbers in paper.values())
    gained = {name: Detection.published(preset)["Learnable-Fourier+MLP"]["ap"] for name, preset in
              (("normalised", mini()), ("unseen", mini_unseen()))}  # fmt: skip
    assert gained == {"normalised": pytest.approx(0.402), "unseen": pytest.approx(0.395)}


def test_a_few_scenes_are_learned_by_heart() -> None:
    config = replace(tiny(), steps=80, rate=2e-3, warmup=20, scenes=(4, 4), batch=4, crop=False, flip=False, sizes=(64,))
    task = Detection(config, None)
    task.test = task.train
    engine = Engine(task, parse(METHOD), 0, launch("cpu", "32"))
    before = engine.evaluate(task.evaluate)["ap50"]
    batches = engine.batches()
    losses = [engine.advance(batches).item() for _ in range(config.steps)]
    after = engine.evaluate(task.evaluate)["ap50"]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 4
    assert before < 0.2
    assert after > 0.8


def test_a_run_is_judged_at_every_size_and_keeps_its_weights(tmp_path: Path) -> None:
    config = replace(tiny(), steps=2, sizes=(40, 48), unseen_sizes=(56, 64), normalize=False, gamma=2.0, scenes=(32, 8))
    found = trained(config, tmp_path)
    assert [(entry["size"], entry["asked"], entry["scale"]) for entry in found["sizes"]] == [
        (48, "trained", 1.0),
        (56, "unseen", 1.167),
        (64, "unseen", 1.333),
    ]
    assert found["sizes"][-1]["ap50"] == found["ap50"]
    assert found["encoding_parameters"] == 32 // 2 * 2 + 2 * (32 * 32 + 32)  # W_r, and two dense layers
    assert (tmp_path / WEIGHTS).exists()
    said = json.loads((tmp_path / "config.json").read_text())
    assert said["categories_found"][0] == [1, "T-shirt/top"]
    assert "loaders" not in said


def test_two_processes_judge_as_one_does() -> None:
    task = Detection(replace(tiny(), scenes=(16, 7)), None)
    model = task.model(parse(METHOD)).eval()
    world = world_of(launch("cpu", "32"))
    seen: list[torch.Tensor] = []
    numbers = np.arange(7)

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 3:
            seen.append(tensor.clone())
        return tensor

    with torch.no_grad():
        for rank, size in ((0, 1), (0, 2), (1, 2)):
            task._at(model, World(rank, size, world.device, note), numbers, 64)
    whole, first, second = seen
    torch.testing.assert_close(first + second, whole)
    assert (first[3:] == 0).all()
    assert (second[:3] == 0).all()


def test_detections_are_in_pixels_of_the_picture() -> None:
    logits = torch.tensor([[[0.0, 2.0, 1.0], [0.0, 0.0, 9.0]]])
    found = detections(logits, torch.tensor([[[0.5, 0.5, 1.0, 0.5]] * 2]), torch.tensor([[200, 100]]))[0]
    assert found[0, :4].tolist() == [0, 25, 200, 75]
    assert found[0, 5] == 1
    assert found[0, 4].item() == pytest.approx(torch.softmax(logits[0, 0], 0)[1].item())
    assert found[1, 4] < 0.01  # nothing there


def test_the_backbone_has_its_own_rate() -> None:
    task = Detection(replace(tiny(), backbone_rate=0.1, scenes=(16, 4)), None)
    model = task.model(parse("Embed-2D"))
    groups = task.groups(model)
    inside = {id(p) for p in model.host.model.backbone.parameters()}
    for group in groups:
        assert {id(p) in inside for p in group["params"]} == {group["factor"] == 0.1}
    assert sum(len(group["params"]) for group in groups) == len([p for p in model.parameters() if p.requires_grad])
    tables = {id(p) for p in model.host.model.position_embedding.parameters()}
    assert all(group["weight_decay"] == 0 for group in groups if tables & {id(p) for p in group["params"]})


def test_presets_are_what_their_tables_say() -> None:
    for name, preset in Detection.presets.items():
        assert isinstance(preset(), DetectionConfig), name
        assert "preset" in preset.__doc__ or name in ("tiny", "demo")
    assert paper().steps == 300 * (118_287 // 64)
    assert paper().drop == 200 * (118_287 // 64)
    assert paper_unseen().unseen_sizes == (736, 768, 800)
    assert not paper_unseen().normalize
    assert (mini().cells, mini_unseen().cells) == (18, 20)
    assert min(mini_unseen().unseen_sizes) > max(mini_unseen().sizes)
    assert mini().seeds >= 3


def test_a_frozen_backbone_must_have_learned() -> None:
    with pytest.raises(Problem, match="--frozen wants a backbone that has learned"):
        Detection(replace(tiny(), frozen=True), None)


def test_pictures_get_boxes_and_coco_results(tmp_path: Path) -> None:
    trained(replace(tiny(), steps=1, scenes=(16, 4)), tmp_path / "run", "Sine-2D")
    for name, size in (("000000000042.png", (50, 70)), ("other.png", (64, 64))):
        Image.effect_noise(size, 50).save(tmp_path / name)
    files = [tmp_path / "000000000042.png", tmp_path / "other.png"]
    lines = detect.detect(tmp_path / "run", files, tmp_path / "out", 0.0, None, torch.device("cpu"))
    assert len(lines) == 2
    with Image.open(tmp_path / "out" / "000000000042-detected.png") as drawn:
        assert drawn.size == (450, 630)
    results = json.loads((tmp_path / "out" / "detections.json").read_text())
    assert [result["image_id"] for result in results] == [42] * 10 + [1] * 10
    assert all(1 <= result["category_id"] <= 10 and len(result["bbox"]) == 4 for result in results)
    scores = [result["score"] for result in results[:10]]
    assert scores == sorted(scores, reverse=True)


def test_the_detector_of_a_run_finds_what_the_run_found(tmp_path: Path) -> None:
    config = replace(tiny(), steps=3, scenes=(16, 6))
    found = trained(config, tmp_path)
    finder = detect.Finder(tmp_path, None, torch.device("cpu"))
    pictures = Detection(config, None).test
    all_found = np.stack([finder(pictures.pixels(i)).numpy() for i in range(6)])
    scores = evaluation.evaluate(pictures, np.arange(6), all_found, config.enlarge)
    assert scores["ap50"] == pytest.approx(found["ap50"], abs=1e-9)


def test_what_is_no_finished_run_of_detection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="is missing; expected the folder of a finished run of detection"):
        detect.Finder(tmp_path, None, torch.device("cpu"))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / WEIGHTS).touch()
    (tmp_path / "config.json").write_text(json.dumps({"task": "classification"}))
    with pytest.raises(Problem, match="must be a run of detection, got one of classification"):
        detect.Finder(tmp_path, None, torch.device("cpu"))
