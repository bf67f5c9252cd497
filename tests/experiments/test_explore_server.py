"""What the server of `lff explore` answers, what it refuses, and what the command says."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from test_report import make

import lff
from lff.experiments import cli, explore
from lff.experiments.explore.server import Server

pytestmark = pytest.mark.plain


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(explore.files([]))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(server: Server, path: str = "/", *, method: str = "GET", host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    wire = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    wire.putrequest(method, path, skip_host=True)
    wire.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    wire.endheaders()
    answer = wire.getresponse()
    found = answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    wire.close()
    return found


def test_the_page_and_all_that_it_asks_for_are_served(server: Server) -> None:
    status, body, headers = ask(server)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'self'" in headers["content-security-policy"]
    names = [part.split(b'"')[0].decode() for part in body.split(b'src="')[1:]]
    assert {"page.js", "runs.js"} < set(names)
    for name in [*names, "style.css", "index.html"]:
        assert ask(server, f"/{name}")[0] == 200, name
    assert ask(server, "/?x=1", host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "0.0.0.0:{port}"])
def test_requests_for_other_hosts_are_refused(server: Server, host: str) -> None:
    status, body, _ = ask(server, host=host.format(port=server.server_port))
    assert status == 403
    assert b"<html" not in body


def test_a_request_without_a_host_or_with_two_is_refused(server: Server) -> None:
    for hosts in ("", f"Host: 127.0.0.1:{server.server_port}\r\nHost: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as wire:
            wire.sendall(f"GET / HTTP/1.1\r\n{hosts}\r\n".encode())
            assert wire.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/static/../../node.py",
        "/node.py",
        "/..%5cnode.py",
        "/runs/",
    ],
)
def test_paths_outside_are_refused(server: Server, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_anything_but_get_is_refused(server: Server, method: str) -> None:
    status, _, headers = ask(server, method=method)
    assert (status, headers["allow"]) == (405, "GET")


def test_other_machines_cannot_reach_it(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_the_command_serves_until_it_is_interrupted() -> None:
    def interruptible() -> None:
        """What a shell starts in the background, these tests for instance, ignores Ctrl-C and hands that on."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [sys.executable, "-m", "lff", "explore"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=interruptible) as process:
        assert process.stdout
        url = process.stdout.readline().split()[3]
        wire = http.client.HTTPConnection(url.split("/")[2], timeout=10)
        wire.request("GET", "/")
        assert b"What an encoding takes for near" in wire.getresponse().read()
        wire.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def command(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["lff", "explore", *map(str, words)])
    cli.main()


def exported(folder: Path) -> list[dict[str, object]]:
    text = (folder / "runs.js").read_text("utf-8")
    found: list[dict[str, object]] = json.loads(text.partition("LFF.runs = ")[2].rstrip(";\n"))
    return found


def test_export_writes_the_runs_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path)
    (folder / "runs/Sine-2D--seed-0/checkpoint/encoding-final/config.json").write_text("{}")
    command(monkeypatch, folder, "--export", folder / "explore")
    said = capsys.readouterr()
    assert f"The page is {folder / 'explore/index.html'}" in said.out
    assert f"lff report {folder}" in said.out
    assert "Sine-2D, seed 0 is left out" in said.err
    assert [run["id"] for run in exported(folder / "explore")] == ["Embed-1D--seed-0", "Learnable-Fourier+MLP--seed-0"]
    assert str(tmp_path.parent) not in (folder / "explore/runs.js").read_text("utf-8")  # the page may travel


def test_a_saved_encoding_is_a_page_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lff.LearnableFourier(4, 24, groups=2).bfloat16().save_pretrained(tmp_path / "mine")
    command(monkeypatch, tmp_path / "mine", "--export", tmp_path / "page")
    (run,) = exported(tmp_path / "page")
    assert (run["id"], run["coords"]) == ("mine", 4)


def test_an_encoding_of_ones_own_is_shown_on_its_grid() -> None:
    class Doubled(lff.Sine):
        def encode(self, positions: torch.Tensor) -> torch.Tensor:
            return super().encode(2 * positions)

    with pytest.raises(ValueError, match="Doubled"):
        explore.node(Doubled(2, 8))
    found = explore.node(Doubled(2, 8), (3, 4))
    assert (found["kind"], found["join"], found["extent"]) == ("embed", "cell", [3, 4])


def test_a_folder_without_runs_is_told_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, tmp_path)
    assert ended.value.code == 2
    assert "compare.json is missing" in capsys.readouterr().err
