import contextlib
import importlib.util
import os
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from fleet_processes import NAUGHTY, PRESENT, STARTED, deployed, marked

if importlib.util.find_spec("flwr") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_configure(config):
    """One file says what all test processes start; its name marks everything that they start."""
    if STARTED not in os.environ:
        handle, os.environ[STARTED] = tempfile.mkstemp(prefix="fleet-tests-")
        os.close(handle)
        config.fleet_tests_began = True
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the session ends as after Ctrl-C


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Whatever is still running is a failure, and is ended."""
    if getattr(session.config, "fleet_tests_began", False):
        until = time.monotonic() + 10
        while (left := _left()) and time.monotonic() < until:
            time.sleep(0.2)
        session.config.fleet_tests_left = [_line(one) for one in left]
        if left and session.exitstatus == 0:
            session.exitstatus = 1
        _end(left)


def _left() -> list[psutil.Process]:
    return [one for one in marked(STARTED, os.environ[STARTED]) if one.pid != os.getpid()]


def _line(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:90]}"
    return str(process.pid)


def _end(left: list[psutil.Process]) -> None:
    """Ask them to end, then kill what is there: `deploy.sh` ends its fleet when it is asked."""
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(left, timeout=30)
    while still := _left():
        for process in still:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(still, timeout=5)


def pytest_terminal_summary(terminalreporter, config):
    if not getattr(config, "fleet_tests_began", False):
        return
    file = Path(os.environ[STARTED])
    terminalreporter.section("what the tests started")
    for line in file.read_text().splitlines():
        terminalreporter.line(line)
    left = getattr(config, "fleet_tests_left", [])
    for line in left:
        terminalreporter.line(f"LEFT RUNNING, now ended: {line}")
    if not left:
        terminalreporter.line("nothing of it is left running")
    file.unlink()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    work = tmp_path_factory.mktemp("fleet") / "work"
    only = " ".join(map(str, PRESENT))
    with deployed(NAUGHTY, work, "--nodes", "10", "--only", only) as up:
        yield up
