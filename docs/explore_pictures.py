"""Takes the pictures of explore.md in Debian's chromium, from a page exported for the occasion."""

import io
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import sync_playwright

from lff.experiments import explore

HERE = Path(__file__).parent
RUNS = HERE.parent / "results/classification-mini"
RUN = "run:Learnable-Fourier+MLP--seed-0"
PICTURES = {
    "explore-cross-and-ball.png": ("light", {}),
    "explore-training.png": ("dark", {"a.from": RUN, "a.stop": 0, "b.from": RUN, "low": "fit", "at": "5,6"}),
}


def main() -> None:
    runs, _ = explore.collect(RUNS)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = explore.export(runs, Path(folder))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for name, (scheme, state) in PICTURES.items():
            tab = browser.new_page(viewport={"width": 1500, "height": 1000}, color_scheme=scheme)
            tab.goto(f"{page.as_uri()}#{urlencode(state)}")
            tab.wait_for_function("LFF.page.drawn > 0 && !LFF.page.waiting")
            Image.open(io.BytesIO(tab.screenshot())).convert("RGB").save(HERE / name, optimize=True)
            tab.close()
        browser.close()


if __name__ == "__main__":
    main()
