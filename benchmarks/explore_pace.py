"""How many maps a second the page of `lff explore` draws while a pointer moves, into results/benchmarks/explore-pace.json.

python benchmarks/explore_pace.py

Measured in the page, in Debian's chromium without a GPU. A browser draws as often as the screen is refreshed, 60 times a second
here; what a map costs is measured apart.
"""

import shutil
import statistics
import tempfile
from pathlib import Path
from urllib.parse import urlencode

import tables
from playwright.sync_api import sync_playwright

from lff.experiments import explore
from lff.experiments.environment import environment

#: Moves the pointer, or a frequency, before every frame: maps a second, and the milliseconds that each frame was at work.
MEASURE = """async (dragging) => {
  const canvas = document.querySelector(dragging ? "#settings-b .frequencies" : "#map-a .map");
  const box = canvas.getBoundingClientRect();
  const points = LFF.page.panels.b.settings.points;
  const frame = () => new Promise(requestAnimationFrame);
  const work = [];
  const draw = LFF.page.frame.bind(LFF.page);
  LFF.page.frame = () => {
    const begin = performance.now();
    draw();
    work.push(performance.now() - begin);
  };
  const send = (name, x, y) => canvas.dispatchEvent(
    new PointerEvent(name, { clientX: box.left + x, clientY: box.top + y, pointerType: "mouse", pointerId: 1 }));
  canvas.setPointerCapture = () => {};
  if (dragging) send("pointerdown", ...points.place(0));
  await frame();
  const [begin, drawn] = [performance.now(), LFF.page.drawn];
  for (let i = 0; i < 180; i++) {
    send("pointermove", (box.width * (i + 0.5)) / 180, box.height * (0.5 + 0.4 * Math.sin(i / 9)));
    await frame();
  }
  const rate = (1000 * (LFF.page.drawn - drawn)) / (performance.now() - begin);
  if (dragging) send("pointerup", 0, 0);
  return { rate, work };
}"""
MLP = "Learnable-Fourier+MLP"
TIMES = 2  # each case, for a look at how far two runs differ
CASES = {
    "pointer, Learnable-Fourier": ({"a.from": "Learnable-Fourier", "b.from": "Learnable-Fourier"}, False),
    "pointer, Learnable-Fourier+MLP": ({"a.from": MLP, "b.from": MLP}, False),
    "pointer, boxes, 2/2": ({"positions": "boxes", "a.from": f"{MLP}-2/2", "b.from": f"{MLP}-2/2"}, False),
    "dragged frequency, Learnable-Fourier": ({"a.from": "Sine-2D", "b.from": "Learnable-Fourier"}, True),
    "dragged frequency, Learnable-Fourier+MLP": ({"a.from": "Sine-2D", "b.from": MLP}, True),
}


def main() -> None:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = explore.export([], Path(folder))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for name, (state, dragging) in CASES.items():
            for _ in range(TIMES):
                tab = browser.new_page(viewport={"width": 1600, "height": 1000})
                tab.goto(f"{page.as_uri()}#{urlencode(state)}")
                tab.wait_for_function("LFF.page.drawn > 0 && !LFF.page.waiting")
                found = tab.evaluate(MEASURE, dragging)
                row = {
                    "case": name,
                    "rate": found["rate"],
                    "work": statistics.median(found["work"]),
                    "slowest": max(found["work"]),
                }
                rows.append(row)
                tab.close()
        about = environment()
        about["versions"]["chromium"] = browser.version
        browser.close()
    tables.save("explore-pace", {"environment": about, "rows": rows})


if __name__ == "__main__":
    main()
