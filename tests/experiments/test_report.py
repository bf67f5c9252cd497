"""The report of a folder made here: small encodings, and measures that are known."""

import csv
import io
import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lff
from lff.experiments import report
from lff.experiments.records import read
from lff.experiments.report import figures
from lff.experiments.report.findings import find
from lff.experiments.report.verdict import detectable, verdict
from lff.experiments.statistics import detectable as smallest

TOP1 = {"key": "top1", "label": "Top-1, %", "scale": 100, "digits": 1, "larger": True}
LOSS = {"key": "loss", "label": "Loss", "scale": 1, "digits": 3, "larger": False}
#: Learnable-Fourier+MLP is best by far; Sine-2D is within the noise.
FINAL = {
    "Embed-1D": [0.600, 0.620, 0.610, 0.605],
    "Sine-2D": [0.601, 0.618, 0.613, 0.605],
    "Learnable-Fourier+MLP": [0.650, 0.672, 0.661, 0.653],
}


def make(folder: Path, final: dict[str, list[float | None]] = FINAL, **about: Any) -> Path:
    """A comparison; a value of None is a run that was killed at step 150."""
    seeds = list(range(max(map(len, final.values()))))
    task = {"task": "classification", "preset": "tiny", "command": "lff compare classification --preset tiny --seeds 4"}
    task |= {"methods": list(final), "seeds": seeds, "default": "Embed-1D", "measures": [TOP1, LOSS], "config": {"steps": 200}}
    (folder / "compare.json").write_text(json.dumps({**task, **about}))
    for method, values in final.items():
        for seed, value in enumerate(values):
            run = folder / "runs" / f"{method.replace('/', '-of-').replace(' ', '_')}--seed-{seed}"
            run.mkdir(parents=True)
            (run / "config.json").write_text(json.dumps({"method": method, "seed": seed, "grid": [5, 6]}))
            (run / "environment.json").write_text(
                json.dumps({"commit": "abc123", "device": "CPU: none", "versions": {"torch": "2.11"}, "threads": 2})
            )
            (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(method, value)))
            if seed == 0 and method in lff.METHODS:
                for name in ("initial", "final"):
                    encode = lff.build(method, coords=2, depth=16, extent=(5, 6))
                    encode.save_pretrained(run / "checkpoint" / f"encoding-{name}")
    return folder


def lines(method: str, value: float | None) -> list[dict[str, Any]]:
    trained = value or 0.5
    found: list[dict[str, Any]] = [{"kind": "train", "step": 150, "loss": 1.0, "rate": 0.001, "norm": 1.0, "seconds": 3.0}]
    found += [{"kind": "evaluation", "step": step, "top1": trained * step / 200, "loss": 1.0} for step in (100, 200)]
    if value is None:
        return [line for line in found if line["step"] <= 150]
    other = "interpolate" if "Embed" in method else "rescale"
    sizes = [{"scale": 1.0, "size": [20, 24], "asked": "trained", "top1": value}]
    sizes += [{"scale": 2.0, "size": [40, 48], "asked": other, "top1": value / 2}]
    return [*found, {"kind": "final", "step": 200, "top1": value, "loss": 2 - value, "encoding_parameters": 480, "sizes": sizes}]


def cells(markdown: str) -> dict[str, list[str]]:
    """The rows of a Markdown table by their first cell."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in markdown.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


def test_numbers_are_those_of_scipy(tmp_path: Path) -> None:
    (make(tmp_path) / "speed.json").write_text(
        json.dumps(
            {
                "environment": {},
                "rows": [{"method": m, "seconds": s} for m, s in (("Embed-1D", [1, 2, 9]), ("Sine-2D", [4, 4, 1]))],
            }
        )
    )
    rows = cells(report.table(tmp_path))
    default = np.array(FINAL["Embed-1D"])
    p = {m: stats.ttest_rel(FINAL[m], default).pvalue for m in FINAL if m != "Embed-1D"}
    holm = {"Learnable-Fourier+MLP": 2 * p["Learnable-Fourier+MLP"], "Sine-2D": p["Sine-2D"]}
    assert holm["Learnable-Fourier+MLP"] < 0.0005 < holm["Sine-2D"]
    for method, values in FINAL.items():
        row = rows[f"{method} (default)" if method == "Embed-1D" else method]
        half = stats.t.ppf(0.975, 3) * stats.sem(values)
        assert row[0].strip("*") == f"{100 * np.mean(values):.1f} ± {100 * half:.1f}"
        assert row[1] == f"{2 - np.mean(values):.3f} ± {half:.3f}"
        # Every curve is straight from 100 to 200, and reaches v at 200 v / final.
        steps = np.mean([200 * 0.95 * default.mean() / value for value in values])
        assert row[5:7] == [f"{steps:.0f}", "480"]
        assert row[7:] == [{"Embed-1D": "1.00×", "Sine-2D": "0.50×"}.get(method, "–"), "4 of 4"]
        if method == "Embed-1D":
            assert row[2:5] == ["–"] * 3
            continue
        by = np.array(values) - default
        sign = "+" if by.mean() > 0 else "−"
        assert row[2] == f"{sign}{100 * abs(by.mean()):.1f} ± {100 * stats.t.ppf(0.975, 3) * stats.sem(by):.1f}"
        welch = stats.ttest_ind(values, default, equal_var=False).pvalue
        assert row[3:5] == [f"{x:.3f}" if x >= 0.0005 else "< 0.001" for x in (holm[method], welch)]
    known = [smallest(float(np.std(np.array(FINAL[m]) - default, ddof=1)), 4, 2) for m in p]
    assert (
        f"Smallest detectable difference: {100 * np.median(known):.1f} points (the median over methods; paired t-test, n = 4"
        in (report.table(tmp_path))
    )


def test_csv_has_the_numbers_unrounded(tmp_path: Path) -> None:
    report.write(make(tmp_path))
    rows = list(csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text())))
    assert [row["method"] for row in rows] == list(FINAL)
    assert float(rows[1]["top1"]) == pytest.approx(np.mean(FINAL["Sine-2D"]), rel=1e-12)
    assert float(rows[1]["p_paired_holm"]) == pytest.approx(stats.ttest_rel(FINAL["Sine-2D"], FINAL["Embed-1D"]).pvalue)
    assert (rows[0]["difference"], rows[0]["runs_finished"], rows[0]["relative_speed"]) == ("", "4", "")


@pytest.mark.parametrize(("larger", "best"), [(True, "Learnable-Fourier+MLP"), (False, "Embed-1D (default)")])
def test_the_best_mean_of_the_primary_measure_is_bold(tmp_path: Path, larger: bool, best: str) -> None:
    final = {**FINAL, "Sine-2D": [0.63, 0.63, 0.64, 0.62]}
    report.write(make(tmp_path, final, measures=[{**TOP1, "larger": larger}, LOSS]))
    bold = [row for row in cells(report.table(tmp_path)).items() if any("**" in cell for cell in row[1])]
    assert [name for name, _ in bold] == [best]
    assert [i for i, cell in enumerate(bold[0][1]) if "**" in cell] == [0]
    table = (tmp_path / "report.html").read_text().split("<tbody>")[1].split("</tbody>")[0]
    assert [row.split("</th>")[0].rsplit(">")[-1] for row in table.split("<tr>") if "<strong>" in row] == [best]


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = report.write(make(tmp_path)).read_text()
    assert not re.search(r"https?:|<script|<link|@import|<iframe|src=", page)
    assert set(re.findall(r'(?:href="|url\()(.{5})', page)) <= {"data:", *re.findall(r'(?:href="|url\()(#.{4})', page)}
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', page)) <= set(ids)
    for part in ("Results", "Convergence", "Image sizes", "Environment", "To repeat this", "abc123", "CPU: none"):
        assert part in page
    assert page.count("<svg") == 2 + len(FINAL) == page.count('role="img" aria-label=')
    assert "lff compare classification --preset tiny --seeds 4" in page
    assert not list(tmp_path.glob(".report*"))


def test_tags_are_balanced(tmp_path: Path) -> None:
    opened: list[str] = []

    class Balanced(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "meta":
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

    Balanced().feed(report.write(make(tmp_path)).read_text())
    assert opened == []


def test_two_reports_of_one_folder_are_the_same(tmp_path: Path) -> None:
    make(tmp_path)
    first, second = ({name: (report.write(tmp_path).parent / name).read_bytes() for name in FILES} for _ in range(2))
    assert first == second


FILES = ("report.html", "report.md", "report.csv")


def test_text_is_escaped(tmp_path: Path) -> None:
    evil = "<b>$x$ & |*"
    folder = make(
        tmp_path,
        {"Embed-1D": [0.5, 0.6], evil: [0.6, 0.8]},
        task="<script>alert(1)</script>",
        command="lff <x>",
        config={"<b>": {"a": "<b>"}},
    )
    page = report.write(folder).read_text()
    assert "<b>" not in page
    assert "<script" not in page
    assert "lff &lt;x&gt;" in page
    assert page.count("&lt;b&gt;$x$ &amp; |*") >= 3
    markdown = (tmp_path / "report.md").read_text()
    assert "<script" not in markdown.replace("\\<", "")
    assert r"| \<b>$x$ & \|\* " in markdown


def test_unfinished_runs_are_named_and_left_out(tmp_path: Path) -> None:
    folder = make(tmp_path, {"Embed-1D": [0.6, 0.62, 0.61], "Sine-2D": [0.61, None, 0.63]}, seeds=[0, 1, 2, 3])
    page = report.write(folder).read_text()
    for text in (page, (tmp_path / "report.md").read_text()):
        assert "Sine-2D, seed 1: at step 150" in text
        assert "Sine-2D, seed 3: not begun" in text
        assert "3 of 8 runs have not finished and are left out." in text
    row = cells(report.table(tmp_path))["Sine-2D"]
    assert (row[0].strip("*"), row[-1]) == ("62.0 ± 12.7", "2 of 4")
    assert "n = 2 seeds, two-sided at 0.05, power 80 %" in report.table(tmp_path)


def test_a_folder_without_a_finished_run_says_so(tmp_path: Path) -> None:
    page = report.write(make(tmp_path, {"Embed-1D": [None], "Sine-2D": [None]})).read_text()
    assert "No run has finished with a finite Top-1, so nothing can be said yet." in page
    assert "Convergence" not in page
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "compare.json").write_text((tmp_path / "compare.json").read_text())
    assert "Embed-1D, seed 0: not begun" in report.write(tmp_path / "empty").read_text()


def test_one_seed_has_no_interval_and_no_verdict(tmp_path: Path) -> None:
    folder = make(tmp_path, {"Embed-1D": [0.6], "Sine-2D": [0.65]})
    page = report.write(folder).read_text()
    assert cells(report.table(tmp_path))["Sine-2D"][:5] == ["**65.0**", "1.350", "+5.0", "–", "–"]
    assert "on a single seed: without a second, chance cannot be told from effect." in page
    assert "Smallest detectable difference: unknown (n&nbsp;=&nbsp;1)" in page
    assert "fill-opacity: 0.13" not in page  # the line alone


def said(folder: Path, final: dict[str, list[float | None]], **about: Any) -> str:
    folder.mkdir()
    return verdict(find(read(make(folder, final, **about))))


def test_the_verdict_says_no_more_than_the_tests(tmp_path: Path) -> None:
    clear = said(tmp_path / "a", FINAL)
    assert clear.startswith(
        "Learnable-Fourier+MLP has the highest mean Top-1: 65.9 ± 1.6 %. Its difference to the default, Embed-1D, is"
    )
    assert "over 4 seeds, significant after Holm's correction for 2 methods (p < 0.001)." in clear
    unclear = said(tmp_path / "b", {"Embed-1D": [0.6, 0.62, 0.61], "Sine-2D": [0.63, 0.61, 0.62]})
    assert "not significant with one method compared (p = 0.478). These runs do not show that it is better." in unclear
    assert "Embed-1D, the default, has the highest mean Top-1" in (
        default := said(tmp_path / "c", {"Embed-1D": [0.7, 0.72, 0.711], "Sine-2D": [0.6, 0.622, 0.61], "MLP": [0.7, 0.71, 0.72]})
    )
    assert "Sine-2D differs from it significantly after Holm's correction." in default
    same = said(tmp_path / "d", {"Embed-1D": [0.5, 0.6], "Sine-2D": [0.625, 0.725]})
    assert "cannot be tested, since the differences between seeds do not vary" in same
    assert "tie for the highest mean Top-1" in said(tmp_path / "e", {"Embed-1D": [0.5, 0.6], "Sine-2D": [0.5, 0.6]})
    alone = said(tmp_path / "f", {"Embed-1D": [0.5, 0.6], "Sine-2D": [None, None]})
    assert "No other method has a finished run" in alone
    without = said(tmp_path / "g", {"MLP": [0.5, 0.6], "Sine-2D": [0.7, 0.6]})
    assert "The default, Embed-1D, is not among the methods" in without
    assert said(tmp_path / "h", FINAL, measures=[{**LOSS}]).startswith("Learnable-Fourier+MLP has the lowest mean Loss: 1.341 ±")


def test_a_run_that_diverged_is_not_averaged_away(tmp_path: Path) -> None:
    folder = make(tmp_path, {"Embed-1D": [0.5, 0.6], "Sine-2D": [math.nan, 0.9]})
    report.write(folder)
    assert cells(report.table(tmp_path))["Sine-2D"][0] == "nan"
    assert "Without a mean, since at least one run diverged: Sine-2D." in (tmp_path / "report.md").read_text()


def test_sizes_are_shown_by_the_way_they_were_asked_for(tmp_path: Path) -> None:
    report.write(make(tmp_path))
    sizes = cells((tmp_path / "report.md").read_text().split("## Image sizes")[1])
    assert sizes["Embed-1D"][0] == "interpolate"
    assert [cell.split(" ±")[0] for cell in sizes["Learnable-Fourier+MLP"]] == [
        "rescale",
        "**65.9",
        ["**33.0", " 0.8**"][0],
    ]


def test_an_encoding_that_cannot_be_read_leaves_the_rest_of_the_page(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "runs/Sine-2D--seed-0/checkpoint/encoding-final/config.json").write_text('{"class": "Own", "arguments": {}}')
    page = report.write(tmp_path).read_text()
    assert "No picture for Sine-2D: class must be one of" in page
    assert page.count("<svg") == 2 + len(FINAL) - 1


def test_many_methods_differ_in_colour_or_line(tmp_path: Path) -> None:
    findings = find(read(make(tmp_path, {name: [0.5 + 0.01 * i] for i, name in enumerate(["Embed-1D", *"abcdefghijklm"])})))
    methods = findings.comparison.methods
    assert len({(findings.colour(m), findings.dashes(m)) for m in methods}) == len(methods)
    drawn = figures.curves(findings)
    assert drawn is not None
    heights = sorted(float(y) for y in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>[a-m]</text>', drawn))
    assert len(heights) == 13
    assert min(np.diff(heights)) > 12  # names do not overlap
    assert detectable(findings).startswith("Smallest detectable difference: unknown (n = 1)")


def test_curves_that_belong_together_are_drawn_together(tmp_path: Path) -> None:
    final = {name: [0.5 + 0.01 * i] for i, name in enumerate(["Embed-1D", *"abcdef"])}
    page = report.write(
        make(tmp_path, final, panels={"Tables": ["Embed-1D", "a"], "Absent": ["z"], "Rest": ["b", "c"]})
    ).read_text()
    captions = re.findall(r"<figcaption>((?:[^<:]+: )?Top-1,&nbsp;% over the training steps for [^:]+):", page)
    assert captions == [
        "Tables: Top-1,&nbsp;% over the training steps for Embed-1D, a",
        "Rest: Top-1,&nbsp;% over the training steps for b, c",
        "Other methods: Top-1,&nbsp;% over the training steps for d, e, f",
    ]


def test_few_curves_are_drawn_in_one_figure(tmp_path: Path) -> None:
    page = report.write(make(tmp_path, panels={"Tables": ["Embed-1D"]})).read_text()
    assert page.count("over the training steps") == 1
