import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from einops import rearrange
from safetensors.torch import save_file
from torch.nn import functional

import lff
from lff import analysis
from lff.experiments import figures
from lff.experiments.figures.paper import FIGURES, Needed
from lff.experiments.figures.sources import Sources, encodings, places, table_of
from lff.experiments.methods import parse, slug
from lff.experiments.problems import Problem
from lff.experiments.records import FINAL, INITIAL

BPD = {"key": "bpd", "label": "Bits", "scale": 1, "digits": 2, "larger": False}


def folder(path: Path, task: str, methods: list[str], *, seeds: int = 2, grid: tuple[int, int] | None = (6, 6), **config) -> Path:
    """A comparison as `lff compare` leaves it behind, with encodings of the first seed."""
    path.mkdir(parents=True)
    about = {"task": task, "methods": methods, "seeds": list(range(seeds)), "default": methods[0], "measures": [BPD]}
    (path / "compare.json").write_text(json.dumps(about))
    for method in methods:
        for seed in range(seeds):
            run = path / "runs" / slug(method, seed)
            run.mkdir(parents=True)
            (run / "config.json").write_text(json.dumps({"task": task, "method": method, "seed": seed, "grid": grid, **config}))
            lines = [{"kind": k, "step": s, "bpd": 4 - s / 10 + seed} for k, s in (("evaluation", 5), ("final", 10))]
            (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            if seed == 0:
                name, coords = parse(method).name, 4 if task == "captioning" else 2
                for kept in (INITIAL, FINAL):
                    lff.build(name, coords=coords, depth=16, extent=(6,) * coords).save_pretrained(run / kept)
    return path


def test_the_paper_has_sixteen_figures_and_each_needs_methods_that_exist() -> None:
    assert [figure.number for figure in FIGURES] == list(range(1, 17))
    for figure in FIGURES:
        for row in figure.rows:
            assert parse(str(row)).name == row.name


def test_what_runs_allow_is_drawn_and_the_rest_is_listed_with_its_command(tmp_path: Path) -> None:
    rows = ["Embed-2D", "Learnable-Fourier+MLP", "MD-Sine"]
    made = figures.write([folder(tmp_path / "runs", "generation", rows)], tmp_path / "out")
    drawn = {m.name for m in made if m.file and m.name != "Beyond"}
    assert drawn == {f"Figure {n}" for n in (2, 3, 4, 5, 14, 16)}
    assert sorted(p.name for p in (tmp_path / "out").glob("figure-*")) == [f"figure-{n:02d}.png" for n in (2, 3, 4, 5, 14, 16)]
    third = next(m for m in made if m.name == "Figure 3")
    assert third.says == "runs, 2 seeds; without Embed-1D, Sine-2D, Sine-1D, Learnable-Fourier, MLP"
    told = figures.listing(made)
    assert "needs a finished run of detection with Embed-2D that kept its encoding: lff compare detection" in told
    assert "Learnable-Fourier+MLP-2/2(kl=1.0)" in told
    assert all(m.file.read_bytes().startswith(b"\x89PNG") for m in made if m.file)


def test_captioning_gives_its_maps_its_weights_and_its_positions(tmp_path: Path) -> None:
    rows = ["Learnable-Fourier+MLP-2/2", "Learnable-Fourier+MLP-2/2(kl=1.0)"]
    runs = folder(tmp_path / "runs", "captioning", rows, grid=None)
    made = {m.name: m for m in figures.write([runs], tmp_path / "out")}
    assert {name for name, m in made.items() if m.file} >= {f"Figure {n}" for n in (2, 4, 11, 12, 13, 16)}


def test_figures_are_made_without_any_runs(tmp_path: Path) -> None:
    made = figures.write([], tmp_path)
    assert [m.name for m in made if m.file] == ["Figure 2", "Figure 4", "Figure 16"]
    # What `lff positions` says of the same screens, which computes it by other means.
    assert made[15].says == "978 of 992 unseen boxes are in the hull of the training screens of the package"


def test_positions_are_those_of_the_data_set_that_is_given(tmp_path: Path) -> None:
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.jsonl").write_text("")
    with pytest.raises(Problem, match="no screen with captions for train"):
        figures.write([], tmp_path / "out", screens=tmp_path)


def test_pictures_of_two_comparisons_of_one_task_lie_side_by_side(tmp_path: Path) -> None:
    both = [folder(tmp_path / name, "classification", ["Sine-2D"], seeds=1) for name in ("one", "two")]
    made = [m.file for m in figures.write(both, tmp_path / "out") if m.name == "Beyond"]
    assert [file.name for file in made if file] == [f"similarity-{name}-Sine-2D--seed-0.png" for name in ("one", "two")]


def test_a_row_is_told_from_itself_with_the_kl_loss_and_with_options(tmp_path: Path) -> None:
    rows = ["Learnable-Fourier+MLP(gamma=4)", "Learnable-Fourier+MLP(kl=1.0)", "Learnable-Fourier+MLP"]
    sources = Sources([folder(tmp_path / "runs", "generation", rows)])
    assert {run.method for run in sources.runs("generation", Needed(rows[2]))} == {rows[2]}
    assert {run.method for run in sources.runs("generation", Needed(rows[2], kl=True))} == {rows[1]}
    assert sources.runs("detection", Needed(rows[2])) == []
    everywhere = Sources([folder(tmp_path / "kl", "generation", rows[2:], kl=1.0)])
    assert everywhere.runs("generation", Needed(rows[2])) == []
    assert len(everywhere.runs("generation", Needed(rows[2], kl=True))) == 2


@pytest.mark.parametrize(
    ("task", "method", "last"),
    [
        ("detection", "Learnable-Fourier+MLP", 1.0),
        ("detection", "Sine-2D", 2 * math.pi),
        ("detection", "Sine-2D(normalize=False)", 5.0),
        ("detection", "Embed-2D", 5.0),
        ("classification", "MLP", 5.5 / 6),
        ("classification", "MLP(normalize=False)", 5.0),
        ("classification", "Learnable-Fourier+MLP(normalize=True)", 5.5 / 6),
        ("generation", "MLP", 5.5 / 6),
        ("generation", "Learnable-Fourier+MLP", 5.0),
        ("my_module:Mine", "MLP", 5.0),
    ],
)
def test_runs_are_asked_as_the_host_asked_them(tmp_path: Path, task: str, method: str, last: float) -> None:
    config = {"normalize": True, "width": 16} if task == "detection" else {}
    (run,) = Sources([folder(tmp_path / "runs", task, [method], seeds=1, **config)]).comparisons[0].runs
    grid, at, cells = places(run)
    assert grid[-1, -1].tolist() == pytest.approx([last, last])
    assert torch.equal(at[0], grid[int(cells[0, 0]), int(cells[0, 1])])


def test_detrs_own_sines_are_drawn_though_no_run_keeps_them(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", "detection", ["Sine-2D"], seeds=1, normalize=True, width=32)
    shutil.rmtree(runs / "runs/Sine-2D--seed-0/checkpoint")
    made = {m.name: m for m in figures.write([runs], tmp_path / "out")}
    assert made["Figure 9"].file
    (run,) = Sources([runs]).comparisons[0].runs
    grid, at, cells = places(run)
    host = transformers.DetrConfig(d_model=32, use_timm_backbone=False, backbone_config=transformers.ResNetConfig())
    model = transformers.DetrForObjectDetection(host).model.position_embedding
    own = rearrange(model((1, 32, 6, 6), device="cpu", dtype=torch.float32), "1 d r c -> r c d")
    expected = functional.cosine_similarity(own, own[int(cells[0, 0]), int(cells[0, 1])], dim=-1)
    torch.testing.assert_close(analysis.similarity(encodings(run)["Trained"], grid, at)[0], expected, atol=1e-5, rtol=0.0)


def test_a_models_table_of_positions_is_found_by_its_name(tmp_path: Path) -> None:
    table = torch.randn(5, 8)
    tensors = {"embeddings.position_embeddings.weight": table, "word_embeddings.weight": torch.zeros(3, 8)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert torch.equal(table_of(tmp_path / "model.safetensors")(lff.grid(5)), table)
    made = figures.write([], tmp_path / "out", table=tmp_path / "model.safetensors")
    assert made[0].says == "the table of model.safetensors"
    save_file({"words": table}, tmp_path / "none.safetensors")
    with pytest.raises(Problem, match="one matrix named as a table of positions, got none"):
        table_of(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"x")
    with pytest.raises(Problem, match="must be a safetensors file"):
        table_of(tmp_path / "bad.safetensors")


def test_maps_show_features_before_the_mlp(tmp_path: Path) -> None:
    run = Sources([folder(tmp_path / "runs", "generation", ["Learnable-Fourier+MLP"])]).comparisons[0].runs[0]
    encode = encodings(run)["Trained"]
    grid, at, _ = places(run)
    expected = analysis.similarity(analysis.features(encode), grid, at)
    from lff.experiments.figures.make import _maps

    panels = _maps(run).axes[5:10]  # the second row: trained
    for panel, values in zip(panels, expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(panel.images[0].get_array().data), values)


@pytest.mark.plain
def test_the_command_lists_and_writes(tmp_path: Path) -> None:
    runs = folder(tmp_path / "runs", "classification", ["Embed-1D", "Learnable-Fourier+MLP"], seeds=1)
    told = subprocess.run([sys.executable, "-m", "lff", "figures", str(runs)], capture_output=True, text=True, check=True).stdout
    assert f"Figure 1: Similarity of learned positions in a row\n    {runs}/figures/figure-01.png (runs: Embed-1D, seed 0" in told
    assert (runs / "figures" / "similarity-runs-Learnable-Fourier+MLP--seed-0.png").exists()
    wrong = subprocess.run(
        [sys.executable, "-m", "lff", "figures", str(tmp_path / "nowhere")], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "compare.json is missing" in wrong.stderr
