"""A server for one page on this machine alone.

It listens on the loopback address, answers GET and nothing else, and only where a request names this machine as its host: a page
of another site that had its name point here would otherwise be read as if it were ours. It holds its files in memory by name, so
there is no path that leads anywhere else.
"""

import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

ADDRESS = "127.0.0.1"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    # Nothing but this server may be asked, by whatever is on the page.
    "Content-Security-Policy": "default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """Serves files from memory.

    Args:
        files: content by name.
        port: 0 takes a free one.
    """

    daemon_threads = True

    def __init__(self, files: dict[str, bytes], port: int = 0) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.files = files

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a request may call this machine."""
        return tuple(f"{name}:{self.server_port}" for name in (ADDRESS, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, "this page is for the machine that it runs on")
            return
        name = unquote(urlsplit(self.path).path).removeprefix("/") or "index.html"
        if name not in self.server.files:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such file here")
            return
        kind = _TYPES.get(PurePosixPath(name).suffix, "application/octet-stream")
        self._answer(HTTPStatus.OK, self.server.files[name], f"{kind}; charset=utf-8")

    def __getattr__(self, name: str) -> Any:
        # The base class looks for do_POST and the like, and would answer 501 where there is none.
        if name.startswith("do_"):
            return self._only_get
        raise AttributeError(name)

    def _only_get(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this page is read by GET alone")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self.close_connection = True  # what else the request has is not read
        self._answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        own = {"Content-Type": kind, "Content-Length": str(len(body))}
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            own["Allow"] = "GET"
        if self.close_connection:
            own["Connection"] = "close"
        for name, value in (own | _HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "lff"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: a person looks at a page."""


def run(server: Server, *, open: bool = False) -> None:
    """Serves until it is interrupted, and says where."""
    print(f"The page is {server.url} and is served to this machine alone; Ctrl-C ends it", flush=True)
    if open:
        webbrowser.open(server.url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()
