"""A page that is served on this machine and made anew whenever what it shows has changed."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from jinja2 import Template

from safari.errors import InputError

HOST = "127.0.0.1"
WAITING = Template(
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="5">'
    "<title>Waiting</title><p>{{ reason }}</p>",
    autoescape=True,
)
"""What is shown while there is nothing to show yet."""


class LivePage:
    """The page of a directory, made by `make` when a file there has changed since it was made last."""

    def __init__(self, directory: Path, make: Callable[[Path], str]):
        self._directory, self._make = directory, make
        self._lock = Lock()
        self._seen: Any = None
        self._html = ""

    def html(self) -> str:
        """Raises `InputError` while there is nothing to show."""
        with self._lock:
            seen = self._state()
            if seen != self._seen:
                self._html, self._seen = self._make(self._directory), seen
            return self._html

    def _state(self) -> list[tuple[str, int]]:
        """The files there and in its folders, each with its time; a checkpoint is a folder of its own."""
        found = [*self._directory.glob("*"), *self._directory.glob("*/*")]
        return sorted((str(path), _time(path)) for path in found if not path.name.startswith("."))


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, and with nothing else."""

    def __init__(self, page: LivePage, *rest: Any):
        self.page = page
        super().__init__(*rest)

    def do_GET(self) -> None:
        if self.path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            self._answer(HTTPStatus.OK, self.page.html())
        except InputError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, WAITING.render(reason=str(error)))

    def _answer(self, status: HTTPStatus, html: str) -> None:
        content = html.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        # A browser that loads the page again, or is closed, does not wait for the rest of this one.
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Requests are not logged."""


def serve(directory: Path, make: Callable[[Path], str], port: int, say: Callable[[str], None]) -> None:
    """Serve the page of `directory` on this machine until the process is stopped.

    Args:
        directory: what the page shows.
        make: the HTML of a directory.
        port: where; 0 for one that is free.
        say: is told the address.

    Raises:
        InputError: if the port cannot be had.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(Handler, LivePage(directory, make)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "it is no port"
        raise InputError("--port", port, f"cannot be opened ({reason})") from None
    with server:
        say(f"http://{HOST}:{server.server_port}/")
        server.serve_forever()


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
