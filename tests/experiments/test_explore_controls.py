"""Every control of the page of `lff explore` does what it says, by mouse, touch and keys, at any width."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from explored import MARKS, launched, look, runs, settled, state, values, watched

from lff.experiments import explore

pytestmark = MARKS
MLP = "Learnable-Fourier+MLP"
RUN = "run:Learnable-Fourier+MLP--seed-0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with watched(browser) as page:
        yield page


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found, _ = explore.collect(runs(tmp_path_factory.mktemp("comparison")))
    return explore.export(found, tmp_path_factory.mktemp("page"))


def choose(name: str, value: str) -> Callable[[Any], None]:
    return lambda page: page.locator(name).select_option(value)


def fill(name: str, value: str, then: str = "Tab") -> Callable[[Any], None]:
    def act(page: Any) -> None:
        page.locator(name).fill(value)
        page.locator(name).press(then)

    return act


SMALL = {"rows": 12, "cols": 12, "b.from": MLP, "b.features": 64, "b.gamma": 4}
BOXES = {**SMALL, "positions": "boxes", "height": 3, "width": 3}
#: a start, what is done, what the state then says, and whether the right map is another one
CONTROLS = {
    "method": (SMALL, choose("#settings-b .from", "Embed-2D"), {"b.from": "Embed-2D"}, True),
    "gamma": (SMALL, fill("#settings-b .gamma", "0"), {"b.gamma": 1}, True),
    "features": (SMALL, fill("#settings-b .features", "0"), {"b.features": 8}, True),
    "groups": (SMALL, choose("#settings-b .groups", "2"), {"b.groups": 2}, True),
    "seed": (SMALL, fill("#settings-b .seed", "7"), {"b.seed": 7}, True),
    "rows": (SMALL, fill("#rows", "9"), {"rows": 9, "cols": 12}, True),
    "columns": (SMALL, fill("#cols", "20"), {"rows": 12, "cols": 20}, True),
    "normalising": (SMALL, choose("#normalize", "1"), {"normalize": 1}, True),
    "colours": ({**SMALL, "b.gamma": 64}, choose("#low", "fit"), {"low": "fit"}, False),
    "positions": (SMALL, choose("#positions", "boxes"), {"positions": "boxes", "a.from": "Sine-4D", "b.from": MLP}, True),
    "box height": (BOXES, fill("#height", "5"), {"height": 5}, True),
    "box width": (BOXES, fill("#width", "6"), {"width": 6}, True),
    "compared with": (BOXES, choose("#view", "resized"), {"view": "resized"}, True),
    "run": (SMALL, choose("#settings-b .from", RUN), {"b.from": RUN, "b.stop": 2, "rows": 5, "cols": 6}, True),
    "run of boxes": (SMALL, choose("#settings-b .from", "run:boxes--seed-0"), {"positions": "boxes", "b.stop": 0}, True),
    "training by keys": ({"b.from": RUN}, lambda page: page.locator("#settings-b .stop").press("ArrowLeft"), {"b.stop": 1}, True),
    "training": ({"b.from": RUN}, fill("#settings-b .stop", "0"), {"b.stop": 0}, True),
    "frequency": (SMALL, fill("#settings-b [aria-label='Frequency, column']", "0.5"), {}, True),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_each_control_changes_what_it_should(page: Any, exported: Path, control: str) -> None:
    start, act, expected, another = CONTROLS[control]
    look(page, exported, start)
    before, picture = values(page, "b"), page.locator("#map-b .map").screenshot()
    left = state(page)["a"]
    act(page)
    settled(page)
    found = state(page)
    flat = found | {f"{side}.{key}": value for side in "ab" for key, value in found[side].items()}
    assert {key: flat[key] for key in expected} == expected
    assert (values(page, "b") != before) == another
    assert page.locator("#map-b .map").screenshot() != picture
    assert len(values(page, "b")) == found["rows"] * found["cols"]
    if control in ("method", "gamma", "features", "groups", "seed", "frequency"):
        assert found["a"] == left


def test_nothing_is_said_of_a_map_that_is_not_drawn_yet(page: Any, exported: Path) -> None:
    look(page, exported, SMALL)
    # On a busy machine a frame comes later than what is said once nothing changes any more: here, after a second.
    page.evaluate(
        """() => {
            const { page } = LFF;
            page.frame();
            globalThis.requestAnimationFrame = (draw) => setTimeout(draw, 1000);
            page.changed("b", "encoding", { from: "run:boxes--seed-0" });
        }"""
    )
    page.wait_for_timeout(600)  # `watched` sees what was wrong
    settled(page)
    assert state(page)["positions"] == "boxes"
    assert "Encoding.from_pretrained" in page.locator("#settings-b code").text_content()


def test_only_controls_that_an_encoding_has_are_there(page: Any, exported: Path) -> None:
    shown = {"gamma", "features", "groups", "seed", "stop"}
    has = {
        "none": set(),
        "Sine-2D": {"features"},
        "Embed-2D": {"features", "seed"},
        "N(0, 4^-2)": {"features", "groups", "seed"},
        MLP: {"gamma", "features", "groups", "seed"},
        RUN: {"stop"},
    }
    for name, expected in has.items():
        look(page, exported, {"b.from": name, "rows": 5, "cols": 6})
        page.reload()
        settled(page)
        assert {key for key in shown if page.locator(f"#settings-b .{key}").is_visible()} == expected, name


def centre(page: Any, name: str, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
    box = page.locator(name).bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def test_both_maps_follow_the_pointer_and_stay_where_it_clicks(page: Any, exported: Path) -> None:
    look(page, exported, {**SMALL, "at": "2,2"})
    start = {side: values(page, side) for side in "ab"}
    page.mouse.move(*centre(page, "#map-a .map", 0.96, 0.04))
    settled(page)
    for side in "ab":
        assert values(page, side)[11] == pytest.approx(1, abs=1e-5)
        assert values(page, side) != start[side]
    page.mouse.move(5, 5)
    settled(page)
    assert {side: values(page, side) for side in "ab"} == start
    page.mouse.click(*centre(page, "#map-b .map", 0.04, 0.96))
    page.mouse.move(5, 5)
    settled(page)
    assert state(page)["at"] == "11,0"
    assert values(page, "a")[11 * 12] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("rows", "cols"), [(64, 16), (12, 48), (64, 64)])
@pytest.mark.parametrize("viewport", [(1600, 600), (360, 740), (800, 1200)])
def test_cells_are_square_and_the_pointer_finds_them(
    browser: Any, exported: Path, rows: int, cols: int, viewport: tuple[int, int]
) -> None:
    with watched(browser, viewport=dict(zip(("width", "height"), viewport, strict=True))) as page:
        look(page, exported, {"rows": rows, "cols": cols, "b.features": 32})
        page.locator("#map-b .map").scroll_into_view_if_needed()
        box = page.locator("#map-b .map").bounding_box()
        assert box["width"] / cols == pytest.approx(box["height"] / rows, rel=0.01)  # or a ball would not look like one
        page.mouse.click(*centre(page, "#map-b .map", (3 + 0.5) / cols, (rows - 2 + 0.5) / rows))
        assert state(page)["at"] == f"{rows - 2},3"


def test_arrow_keys_move_the_place_looked_from(page: Any, exported: Path) -> None:
    look(page, exported, {**SMALL, "at": "2,2"})
    page.locator("#map-a .map").focus()
    for key, cell in (
        ("ArrowRight", "2,3"),
        ("ArrowDown", "3,3"),
        ("Shift+ArrowDown", "11,3"),
        ("Home", "11,0"),
        ("ArrowLeft", "11,0"),
        ("PageUp", "0,0"),
        ("End", "0,11"),
        ("PageDown", "11,11"),
        ("Home", "11,0"),
    ):
        page.keyboard.press(key)
        assert state(page)["at"] == cell
    settled(page)
    assert "Row 11, column 0." in page.locator("#map-b [role=status]").inner_text()


def test_a_finger_moves_the_place_and_a_frequency(browser: Any, exported: Path) -> None:
    with watched(browser, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True) as page:
        look(page, exported, SMALL)
        page.touchscreen.tap(*centre(page, "#map-b .map", 0.04, 0.04))
        settled(page)
        assert state(page)["at"] == "0,0"
        assert page.locator("#map-a .map").evaluate("e => getComputedStyle(e).touchAction") == "none"
        wire = page.context.new_cdp_session(page)
        for kind, places in (("touchStart", [(0.04, 0.04)]), ("touchMove", [(0.5, 0.96)])):  # and follows while it is down
            fingers = [dict(zip("xy", centre(page, "#map-b .map", *place), strict=True)) for place in places]
            wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        settled(page)
        assert state(page)["at"] == "11,6"
        wire.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        plot = page.locator("#settings-b .frequencies")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        x, y = page.evaluate("LFF.page.panels.b.settings.points.place(0)")
        for kind, points in (("touchStart", [(x, y)]), ("touchMove", [(x + 30, y)]), ("touchEnd", [])):
            places = [{"x": box["x"] + px, "y": box["y"] + py} for px, py in points]
            wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})
        settled(page)
        assert state(page)["b"]["w"]


@pytest.mark.parametrize("method", [MLP, "Learnable-Fourier", "Learnable-Fourier+Dense"])
@pytest.mark.parametrize("groups", [1, 2])
def test_dragged_frequencies_move_the_map_and_can_be_put_back(page: Any, exported: Path, method: str, groups: int) -> None:
    look(page, exported, {**SMALL, "b.from": method, "b.groups": groups})
    before = values(page, "b")
    box = page.locator("#settings-b .frequencies").bounding_box()
    x, y = page.evaluate("LFF.page.panels.b.settings.points.place(5)")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    seen = []
    for step in (10, 20, 30):
        page.mouse.move(box["x"] + x + step, box["y"] + y - step)
        settled(page)
        seen.append(values(page, "b"))
    page.mouse.up()
    assert len({tuple(map) for map in [before, *seen]}) == 4  # it follows while the button is down
    incremental = values(page, "b")
    page.reload()
    settled(page)
    assert values(page, "b") == pytest.approx(incremental, abs=1e-6)  # all of it computed anew
    page.locator("#settings-b .frequencies").focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert values(page, "b") != incremental
    page.get_by_role("button", name="Put back").click()
    settled(page)
    assert values(page, "b") == before


def test_both_corners_of_a_boxs_frequencies_can_be_seen_and_dragged(page: Any, exported: Path) -> None:
    look(page, exported, {**BOXES, "b.from": "Learnable-Fourier+MLP-1/4", "b.features": 16})
    plot = page.locator("#settings-b .frequencies")
    before, picture = values(page, "b"), plot.screenshot()
    page.locator("#settings-b .pair-choice").select_option("bottom, right")
    settled(page)
    assert plot.screenshot() != picture
    assert values(page, "b") == before
    page.get_by_label("Number of the frequency").last.fill("3")
    numbers = [float(page.get_by_label(f"Frequency, {side}").last.input_value()) for side in ("top", "left", "bottom", "right")]
    box = plot.bounding_box()
    x, y = page.evaluate("LFF.page.panels.b.settings.points.place(2)")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x + 15, box["y"] + y + 10)
    page.mouse.up()
    settled(page)
    number, _, moved = state(page)["b"]["w"].partition(":")
    w = [float(v) for v in moved.split(",")]
    assert number == "2"
    assert w[:2] == pytest.approx(numbers[:2], rel=1e-2)
    assert w[2] > numbers[2]
    assert w[3] > numbers[3]
    assert values(page, "b") != before


def test_constant_frequencies_are_shown_and_stay(page: Any, exported: Path) -> None:
    look(page, exported, SMALL)
    before = values(page, "a")
    page.mouse.move(*centre(page, "#settings-a .frequencies"))
    page.mouse.down()
    page.mouse.move(*centre(page, "#settings-a .frequencies", 0.7, 0.7))
    page.mouse.up()
    settled(page)
    assert values(page, "a") == before
    assert page.locator("#settings-a [aria-label='Frequency, row']").is_disabled()


def test_tables_leave_blank_what_they_have_no_entry_for(page: Any, exported: Path) -> None:
    look(page, exported, {"a.from": "run:Embed-1D--seed-0", "positions": "points", "rows": 7, "cols": 8, "at": "0,0"})
    found = values(page, "a")
    assert [value is None for value in found] == [row >= 5 or col >= 6 for row in range(7) for col in range(8)]
    look(page, exported, {"a.from": "Embed-2D", "normalize": 1, "rows": 6, "cols": 6})
    page.reload()
    settled(page)
    assert set(values(page, "a")) == {None}
    assert "A table has no entry here" in page.locator("#map-a .summary").inner_text()


def test_a_screen_reader_finds_a_name_for_everything(page: Any, exported: Path) -> None:
    look(page, exported, {"positions": "boxes", "rows": 8, "cols": 8, "b.from": "Learnable-Fourier+MLP-1/4"})
    tree = page.locator("body").aria_snapshot()
    for role in ("combobox", "spinbutton", "slider", "application", "heading", "region"):
        lines = [line.strip() for line in tree.splitlines() if line.strip().startswith(f"- {role}")]
        assert lines, role
        assert [line for line in lines if not line.startswith(f'- {role} "')] == []
    assert page.locator("html").get_attribute("lang") == "en"
    names = page.locator("select:visible, input:visible, canvas[tabindex]").evaluate_all("e => e.map(e => e.tabIndex)")
    assert set(names) == {0}  # the keyboard reaches all


OVERLAPS = """() => {
  const all = [...document.querySelectorAll("h1, h2, h3, p, label, select, input, button, summary, canvas, .pair, .legend")];
  const shown = all.filter((e) => e.checkVisibility() && !e.matches(".spoken") && e.getClientRects().length);
  const box = (e) => e.getBoundingClientRect();
  const found = [];
  shown.forEach((a, i) => shown.slice(i + 1).forEach((b) => {
    if (a.contains(b) || b.contains(a)) return;
    const [p, q] = [box(a), box(b)];
    const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (across > 0.5 && down > 0.5) found.push([a.outerHTML.slice(0, 80), b.outerHTML.slice(0, 80)]);
  }));
  for (const e of shown) {
    const { left, right } = box(e);
    if (left < -0.5 || right > innerWidth + 0.5) found.push([e.outerHTML.slice(0, 80), "leaves the page"]);
    if (e.matches("h1, h2, h3, p, label") && e.scrollWidth > e.clientWidth + 1) found.push([e.outerHTML.slice(0, 80), "is cut"]);
  }
  return { found, count: shown.length };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_overlaps_and_colours_follow_the_system(browser: Any, exported: Path, width: int, scheme: str) -> None:
    boxes = {"positions": "boxes", "rows": 12, "cols": 12, "view": "resized", "b.from": "Learnable-Fourier+MLP-1/4"}
    for start in ({}, boxes, {"a.from": RUN, "b.from": RUN}, {"a.from": "none", "b.from": "Uniform [0, 1] & MLP", "rows": 12}):
        with watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
            look(page, exported, start)
            seen = page.evaluate(OVERLAPS)
            assert seen["count"] > 20
            assert seen["found"] == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            back, text = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
            light = [sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) for colour in (back, text)]
            assert (light[0] > light[1]) == (scheme == "light")
