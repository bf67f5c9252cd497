"""The page of `lff explore` in a real browser, as its own server and as any web server gives it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from explored import MARKS, launched, runs, settled, state, values, watched

import lff
from lff.analysis import similarity
from lff.experiments import explore

pytestmark = MARKS
RUN = "run:Learnable-Fourier+MLP--seed-0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("host", ["its own", "any, in a folder"])
def test_the_page_works_where_it_is_served_and_asks_for_nothing_else(browser: Any, tmp_path: Path, host: str) -> None:
    (tmp_path / "comparison").mkdir()
    folder = runs(tmp_path / "comparison")
    found, _ = explore.collect(folder)
    explore.export(found, tmp_path / "site/some/where")
    anybodys = partial(ThreadingHTTPServer, ("127.0.0.1", 0), partial(_Quiet, directory=tmp_path / "site"))
    with running(explore.Server(explore.files(found)) if host == "its own" else anybodys()) as port:
        place = f"http://127.0.0.1:{port}/" + ("" if host == "its own" else "some/where/")
        with watched(browser, own=(place, "data:")) as page:  # whatever a policy forbids would be on the console
            page.goto(f"{place}#{urlencode({'a.from': RUN, 'b.from': RUN, 'a.stop': 0, 'at': '1,2'})}")
            settled(page)
            for side, stop in (("a", "encoding-initial"), ("b", "encoding-final")):
                kept = folder / "runs" / RUN.removeprefix("run:") / "checkpoint" / stop
                expected = similarity(lff.Encoding.from_pretrained(kept), lff.grid((5, 6)), torch.tensor([[1.0, 2.0]]))
                torch.testing.assert_close(torch.tensor(values(page, side)), expected.flatten(), atol=1e-5, rtol=0.0)
            page.locator("#settings-a .from").select_option("Embed-2D")
            settled(page)
            assert state(page)["a"]["from"] == "Embed-2D"
            assert page.locator("#settings-b .frequencies").evaluate("e => e.clientHeight > 100")  # its style has come too
