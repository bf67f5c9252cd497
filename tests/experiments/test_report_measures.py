import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from lff.experiments import report
from lff.experiments.folder import RunFolder

VALUES = {"Embed-4D": [(0.50, 0.30), (0.52, 0.31), (0.51, 0.29)], "Sine-4D": [(0.60, 0.30), (0.61, 0.33), (0.63, 0.29)]}
MEASURES = [{"key": k, "label": k.upper(), "scale": 100, "digits": 1, "larger": True} for k in ("cider", "bleu1", "meteor")]


def make(folder: Path, values: dict[str, list[tuple[float, float]]] = VALUES, **about: Any) -> Path:
    whole = {"task": "captioning", "methods": list(values), "seeds": [0, 1, 2], "default": "Embed-4D", "measures": MEASURES}
    folder.mkdir(exist_ok=True)
    (folder / "compare.json").write_text(json.dumps(whole | about))
    for method, runs in values.items():
        for seed, (cider, bleu) in enumerate(runs):
            run = RunFolder(folder / "runs" / f"{method}-{seed}", {"method": method, "seed": seed})
            run.append({"kind": "final", "step": 9, "cider": cider, "bleu1": bleu, "meteor": None})
    return folder


def test_every_measure_is_tested_by_welch_s_t_test(tmp_path: Path) -> None:
    lines = report.more_tables(make(tmp_path)).splitlines()
    (row,) = [line for line in lines if line.startswith("| Sine-4D")]
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    for cell, place in zip(cells, (0, 1), strict=True):
        ours, theirs = ([each[place] for each in VALUES[method]] for method in ("Sine-4D", "Embed-4D"))
        p = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
        by = 100 * (sum(ours) - sum(theirs)) / 3
        assert cell.strip("*") == f"{by:+.1f} ({'< 0.001' if p < 0.0005 else f'{p:.3f}'})"
        assert cell.startswith("**") == (p < 0.05)
    assert "METEOR" not in lines[2]  # never computed, so nothing to test


def test_published_numbers_stand_beside_ours(tmp_path: Path) -> None:
    folder = make(tmp_path, paper={"Sine-4D": {"cider": 0.949, "meteor": 0.31}, "MLP": {"cider": 0.7}})
    text = report.more_tables(folder)
    row = text.splitlines()[-1]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == ["Sine-4D", "61.3 ± 3.8", "94.9", "–", "31.0"]
    page = report.write(folder).read_text()
    assert "Beside the paper" in page
    assert "Beside the paper" in (folder / "report.md").read_text()


@pytest.mark.parametrize("values", [{"Embed-4D": VALUES["Embed-4D"]}, {m: runs[:1] for m, runs in VALUES.items()}])
def test_without_another_method_or_a_second_seed_there_is_no_table(
    tmp_path: Path, values: dict[str, list[tuple[float, float]]]
) -> None:
    assert report.more_tables(make(tmp_path, values)) == ""
