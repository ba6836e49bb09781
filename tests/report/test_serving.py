"""`safari report --serve`: the page at an address of this machine, made anew when a file has changed."""

import socket
import struct
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from safari.cli import app
from safari.errors import InputError
from safari.report.serving import serve


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.read().decode()


@contextmanager
def served(directory, make):
    """The address of the page, in a thread of its own."""
    told, known = [], threading.Event()

    def say(address):
        told.append(address)
        known.set()

    threading.Thread(target=serve, args=(directory, make, 0, say), daemon=True).start()
    assert known.wait(10)
    yield told[0]


def test_the_page_is_made_anew_only_when_a_file_has_changed(tmp_path):
    made = []

    def make(directory):
        made.append((directory / "a").read_text())
        return f"page {made[-1]}"

    (tmp_path / "a").write_text("one")
    with served(tmp_path, make) as address:
        assert address.startswith("http://127.0.0.1:")
        assert [get(address), get(address)] == ["page one"] * 2
        (tmp_path / "a").write_text("two, longer")
        assert get(address) == "page two, longer"
        assert made == ["one", "two, longer"]
        (tmp_path / "checkpoint").mkdir()
        get(address)
        (tmp_path / "checkpoint" / "journal.jsonl").write_text("{}")
        get(address)
        assert len(made) == 4
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{address}../a")


def test_a_browser_that_leaves_before_the_page_has_arrived_is_no_error(tmp_path, monkeypatch):
    errors, over = [], threading.Event()
    close = ThreadingHTTPServer.shutdown_request
    monkeypatch.setattr(ThreadingHTTPServer, "handle_error", lambda *_: errors.append(_))
    monkeypatch.setattr(ThreadingHTTPServer, "shutdown_request", lambda *rest: (close(*rest), over.set()))
    page = "long" * 5_000_000
    with served(tmp_path, lambda directory: page) as address:
        with socket.create_connection(("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]))) as browser:
            browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert browser.recv(100).startswith(b"HTTP/1.0 200")
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert over.wait(10)
        assert not errors
        assert get(address) == page


def test_while_there_is_nothing_to_show_the_page_says_why_and_looks_again(tmp_path):
    def make(directory):
        raise InputError("directory", str(directory), "its server has not saved a round yet <b>")

    with served(tmp_path, make) as address, pytest.raises(urllib.error.HTTPError) as refused:
        get(address)
    said = refused.value.read().decode()
    assert refused.value.code == 503
    assert "has not saved a round yet &lt;b&gt;" in said
    assert 'http-equiv="refresh"' in said


def test_a_port_that_cannot_be_had_is_refused(tmp_path):
    with served(tmp_path, lambda _: "") as address:
        taken = int(address.rstrip("/").rpartition(":")[2])
        for port, why in ((taken, "in use"), (70000, "no port")):
            with pytest.raises(InputError, match=f"--port = {port}.*{why}"):
                serve(tmp_path, lambda _: "", port, print)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--port", "80"], "goes with --serve"),
        (["--serve", "--out", "page.html"], "does not go with --serve"),
        (["--serve"], "not a directory that safari made"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, options, word):
    done = CliRunner().invoke(app, ["report", str(tmp_path), *options])
    assert done.exit_code == 2
    assert word in " ".join(done.output.split())
