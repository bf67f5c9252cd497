"""The page of `lff explore` in a real browser, opened from disk."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from explored import MARKS, launched, look, runs, settled, state, values, watched

import lff
from lff.analysis.similarity import similarity
from lff.experiments import cli, explore, report

pytestmark = MARKS
FOURIER = "run:Learnable-Fourier+MLP--seed-0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with watched(browser) as page:
        yield page


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs(tmp_path_factory.mktemp("comparison"))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, comparison: Path) -> Path:
    found, notes = explore.collect(comparison)
    assert notes == []
    return explore.export(found, tmp_path_factory.mktemp("page"))


SETTINGS = [
    {"a.from": "Sine-2D", "b.from": "Learnable-Fourier", "at": "10,50"},
    {
        "b.from": "Learnable-Fourier+MLP",
        "b.gamma": 3,
        "b.seed": 5,
        "b.groups": 2,
        "b.features": 128,
        "rows": 20,
        "cols": 33,
        "at": "0,32",
    },
    {"a.from": "MLP", "b.from": "Fixed-Fourier+MLP", "b.gamma": 0.2, "normalize": 1, "rows": 24, "cols": 17},
    {"a.from": "Embed-2D", "a.seed": 2**32 - 1, "b.from": "Embed-1D+MLP", "rows": 9, "cols": 12},
    {"a.from": FOURIER, "a.stop": 1, "b.from": FOURIER, "at": "4,1"},
    {"b.from": "Learnable-Fourier+MLP", "b.w": "0:0.5,-0.25;7:0,0.125"},
    {
        "positions": "boxes",
        "a.from": "Sine-4D",
        "b.from": "Learnable-Fourier+MLP-2/2",
        "rows": 20,
        "cols": 30,
        "height": 4,
        "at": "3,9",
    },
    {
        "positions": "boxes",
        "view": "resized",
        "normalize": 1,
        "b.from": "Learnable-Fourier-1/4",
        "b.gamma": 0.1,
        "rows": 20,
        "cols": 30,
    },
    {"a.from": "run:boxes--seed-0", "b.from": "MLP", "rows": 16, "cols": 16, "positions": "boxes"},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.get("b.from", "") + setting.get("view", ""))
def test_the_map_is_what_the_python_on_the_page_computes(
    page: Any, exported: Path, comparison: Path, setting: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(comparison.parent)  # where the paths of runs begin
    look(page, exported, setting)
    for side in "ab":
        page.locator(f"#settings-{side} summary").click()
        found: dict[str, Any] = {}
        exec(page.locator(f"#settings-{side} code").inner_text(), found)
        expected = found["values"].flatten()
        got = torch.tensor([value for value in values(page, side) if value is not None])
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=0.0)
        assert expected.max() > 1 - 1e-5


def test_every_method_of_points_and_boxes_is_the_librarys(page: Any, exported: Path) -> None:
    look(page, exported, {})
    names = {coords: page.evaluate("coords => LFF.methodsFor(coords)", coords) for coords in (2, 4)}
    # Three coordinates are no map, and a table of all boxes of a grid would not fit.
    assert set(lff.METHODS) - {*names[2], *names[4]} == {"Sine-3D", "Embed-3D"}
    script = """([name, coords, x, at]) => {
      const node = LFF.build(name, {coords, features: 48, groups: 1, gamma: 3, extent: Array(coords).fill(8)}, 11);
      return Array.from(new LFF.Field(node, Float32Array.from(x.flat())).similarity(Float32Array.from(at)));
    }"""
    for name, coords in [(name, coords) for coords, all_of in names.items() for name in all_of]:
        x = torch.randint(8, (30, coords)).float()
        got = page.evaluate(script, [name, coords, x.tolist(), x[3].tolist()])
        groups = 4 // int(name[-1]) if name[-3:] in ("1/4", "2/2", "4/1") else 1
        torch.manual_seed(11)
        options = {"gamma": 3.0} if "Fourier" in name else {}
        encode = lff.build(name, coords=coords, depth=48 * groups, extent=(8,) * coords, **options)
        torch.testing.assert_close(
            torch.tensor(got, dtype=torch.float32), similarity(encode, x, x[3:4])[0], atol=1e-5, rtol=0.0, msg=name
        )


def test_encodings_that_have_learned_their_norms_and_phases_are_the_librarys(page: Any, exported: Path) -> None:
    x = torch.rand(20, 2) * 6
    encodings = [
        lff.LearnableFourier(2, 24, layer_norm=True, groups=2),
        lff.Modulated(lff.FourierFeatures(2, 16, gamma=1.0, bias=True), 12),
        lff.build("Learnable-Fourier+Dense", coords=2, depth=16),
        lff.LearnableFourier(2, 24, gamma=(1.0, 8.0)),
    ]
    for encode in encodings:
        for weight in encode.parameters():
            torch.nn.init.normal_(weight)
    look(page, exported, {})
    script = """([tree, x]) => {
      const node = LFF.decoded(tree);
      return Array.from(new LFF.Field(node, Float32Array.from(x.flat())).similarity(Float32Array.from(x[0])));
    }"""
    for encode in encodings:
        got = page.evaluate(script, [explore.node(encode), x.tolist()])
        torch.testing.assert_close(torch.tensor(got), similarity(encode, x, x[:1])[0], atol=1e-5, rtol=0.0)


def test_a_link_restores_what_was_seen(page: Any, browser: Any, exported: Path) -> None:
    look(page, exported, {})
    page.locator("#rows").fill("30")
    page.locator("#rows").press("Enter")
    page.locator("#settings-b .from").select_option("Learnable-Fourier+MLP")
    page.locator("#settings-b .gamma").fill("7")
    page.locator("#settings-b .seed").fill("3")
    page.locator("#settings-b .numbers input").nth(1).fill("0.25")
    page.locator("#map-a .map").click(position={"x": 40, "y": 90})
    settled(page)
    fresh = browser.new_page()
    fresh.goto(page.url)
    settled(fresh)
    assert page.url != exported.as_uri()
    assert state(fresh) == state(page)
    assert values(fresh, "b") == values(page, "b")
    assert fresh.locator("#settings-b .gamma-text").inner_text() == "3.36"
    fresh.close()


@pytest.mark.parametrize(
    "broken",
    [
        "a.from=nothing&rows=-4&cols=1e9&at=9999,1&b.gamma=-1&b.features=7&b.seed=x&b.w=0:NaN;x",
        "%%%&=&a.b.c=1&z.from=1",
        "a.w=9999:1,1",
    ],
)
def test_an_address_that_makes_no_sense_still_opens(page: Any, exported: Path, broken: str) -> None:
    page.goto(f"{exported.as_uri()}#{broken}")
    settled(page)
    assert max(value for value in values(page, "b") if value is not None) == pytest.approx(1, abs=1e-5)


def test_a_run_that_the_page_does_not_have_is_named(page: Any, exported: Path) -> None:
    look(page, exported, {"b.from": "run:gone--seed-0"})
    assert page.get_by_text("This page has no run gone--seed-0.").is_visible()


#: Moves the pointer along a curve; gives the cells whose map was not there one frame later, and the maps drawn for nothing.
FOLLOW = """async () => {
  const canvas = document.querySelector("#map-a .map");
  const box = canvas.getBoundingClientRect();
  const frame = () => new Promise(requestAnimationFrame);
  const [late, moves] = [[], 40];
  await frame();
  const drawn = LFF.page.drawn;
  for (let i = 0; i < moves; i++) {
    const [across, down] = [(i + 0.5) / moves, 0.5 + 0.4 * Math.sin(i / 5)];
    const [clientX, clientY] = [box.left + box.width * across, box.top + box.height * down];
    for (const x of [clientX - 3, clientX]) {
      canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY, pointerType: "mouse" }));
    }
    await frame();
    const cell = Math.floor(64 * down) * 64 + Math.floor(64 * across);
    for (const side of ["a", "b"]) if (Math.abs(LFF.page.panels[side].values[cell] - 1) > 1e-5) late.push([side, i]);
  }
  return { late, extra: LFF.page.drawn - drawn - moves };
}"""


def test_every_frame_shows_the_map_of_where_the_pointer_is(page: Any, exported: Path) -> None:
    """How many frames a second that makes is for the machine to say: benchmarks/explore_pace.py measures it."""
    look(page, exported, {"a.from": "Learnable-Fourier", "b.from": "Learnable-Fourier+MLP", "b.features": 384})
    assert state(page)["rows"] == state(page)["cols"] == 64
    assert page.evaluate(FOLLOW) == {"late": [], "extra": 0}


MINI = Path(__file__).parents[2] / "results/classification-mini"


def test_reports_link_every_run_that_has_kept_its_encoding(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(MINI, tmp_path / "mini"))
    assert "explore/" not in report.write(folder).read_text("utf-8")
    for words in (["explore", folder, "--export", folder / "explore"], ["report", folder]):
        monkeypatch.setattr(sys, "argv", ["lff", *map(str, words)])
        cli.main()
    assert f"The report is {folder / 'report.html'}" in capsys.readouterr().out
    kept = {file.parents[1].name: file for file in folder.glob("runs/*/checkpoint/encoding-final")}
    with watched(browser) as page:
        for run, file in kept.items():
            page.goto((folder / "report.html").as_uri())
            assert page.locator(".anchors a").count() == len(kept) > 8
            method = json.loads((folder / "runs" / run / "config.json").read_text())["method"]
            page.get_by_role("link", name=f"{method}, seed 0", exact=True).click()
            settled(page)
            found = state(page)
            assert (found["rows"], found["cols"], found["a"]["stop"], found["b"]["stop"]) == (16, 16, 0, 1)
            assert found["a"]["from"] == found["b"]["from"] == f"run:{run}"
            row, col = page.evaluate("LFF.page.cell()")
            grid = lff.grid((16, 16), normalize=method == "MLP")  # as that task asks it
            expected = similarity(lff.Encoding.from_pretrained(file), grid, grid[row, col][None]).flatten()
            got = torch.tensor(values(page, "b"), dtype=torch.float32)
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=0.0)
