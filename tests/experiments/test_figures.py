import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

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
            (run / "config.json").write_text(json.dumps({"method": method, "seed": seed, "grid": grid, **config}))
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
    assert drawn == {"Figure 2", "Figure 3", "Figure 5", "Figure 14"}
    assert sorted(p.name for p in (tmp_path / "out").glob("figure-*")) == [f"figure-{n:02d}.png" for n in (2, 3, 5, 14)]
    third = next(m for m in made if m.name == "Figure 3")
    assert third.says == "runs, 2 seeds; without Embed-1D, Sine-2D, Sine-1D, Learnable-Fourier, MLP"
    told = figures.listing(made)
    assert "needs a finished run of detection with Embed-2D that kept its encoding: lff compare detection" in told
    assert "Learnable-Fourier+MLP-2/2(kl=1.0)" in told
    assert all(m.file.read_bytes().startswith(b"\x89PNG") for m in made if m.file)


def test_captioning_gives_its_maps_its_weights_and_its_positions(tmp_path: Path) -> None:
    rows = ["Learnable-Fourier+MLP-2/2", "Learnable-Fourier+MLP-2/2(kl=1.0)"]
    runs = folder(tmp_path / "runs", "captioning", rows, grid=None)
    corners = torch.cartesian_prod(*[torch.tensor([0, 99])] * 4)
    figures.save_positions(runs, torch.cat([corners, corners]), torch.tensor([[5, 5, 9, 9], [0, 0, 99, 99], [5, 5, 9, 120]]))
    made = {m.name: m for m in figures.write([runs], tmp_path / "out")}
    assert {name for name, m in made.items() if m.file} >= {f"Figure {n}" for n in (2, 4, 11, 12, 13, 16)}
    assert made["Figure 16"].says == "1 of 2 unseen boxes are in the hull of training's"


def test_figures_are_made_without_any_runs(tmp_path: Path) -> None:
    made = figures.write([], tmp_path)
    assert [m.name for m in made if m.file] == ["Figure 2"]


def test_a_row_is_told_from_itself_with_the_kl_loss_and_with_options(tmp_path: Path) -> None:
    rows = ["Learnable-Fourier+MLP(gamma=4)", "Learnable-Fourier+MLP(kl=1.0)", "Learnable-Fourier+MLP"]
    sources = Sources([folder(tmp_path / "runs", "generation", rows)])
    assert {run.method for run in sources.runs("generation", Needed(rows[2]))} == {rows[2]}
    assert {run.method for run in sources.runs("generation", Needed(rows[2], kl=True))} == {rows[1]}
    assert sources.runs("detection", Needed(rows[2])) == []
    everywhere = Sources([folder(tmp_path / "kl", "generation", rows[2:], kl=1.0)])
    assert everywhere.runs("generation", Needed(rows[2])) == []
    assert len(everywhere.runs("generation", Needed(rows[2], kl=True))) == 2


@pytest.mark.parametrize(("method", "last"), [("Sine-2D", 1.0), ("Embed-2D", 5.0)])
def test_normalised_runs_are_asked_as_the_host_asked_them(tmp_path: Path, method: str, last: float) -> None:
    run = Sources([folder(tmp_path / "runs", "detection", [method], normalize=True)]).runs("detection", Needed(method))[0]
    grid, at, cells = places(run, encodings(run)["Trained"])
    assert grid[-1, -1].tolist() == [last, last]
    assert torch.equal(at[0], grid[int(cells[0, 0]), int(cells[0, 1])])


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
    grid, at, _ = places(run, encode)
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
    assert (runs / "figures" / "similarity-classification-Learnable-Fourier+MLP--seed-0.png").exists()
    wrong = subprocess.run(
        [sys.executable, "-m", "lff", "figures", str(tmp_path / "nowhere")], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "compare.json is missing" in wrong.stderr
