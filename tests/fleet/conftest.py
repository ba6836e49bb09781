import importlib.util
import os
import tempfile
import time
from pathlib import Path

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


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """Whatever is still running is a failure."""
    if getattr(session.config, "fleet_tests_began", False):
        until = time.monotonic() + 10
        while (left := _left()) and time.monotonic() < until:
            time.sleep(0.2)
        session.config.fleet_tests_left = [f"{one.pid} {' '.join(one.cmdline())[:90]}" for one in left]
        if left and session.exitstatus == 0:
            session.exitstatus = 1


def _left():
    return [one for one in marked(STARTED, os.environ[STARTED]) if one.pid != os.getpid()]


def pytest_terminal_summary(terminalreporter, config):
    if not getattr(config, "fleet_tests_began", False):
        return
    file = Path(os.environ[STARTED])
    terminalreporter.section("what the tests started")
    for line in file.read_text().splitlines():
        terminalreporter.line(line)
    left = getattr(config, "fleet_tests_left", [])
    for line in left:
        terminalreporter.line(f"LEFT RUNNING: {line}")
    if not left:
        terminalreporter.line("nothing of it is left running")
    file.unlink()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    work = tmp_path_factory.mktemp("fleet") / "work"
    only = " ".join(map(str, PRESENT))
    with deployed(NAUGHTY, work, "--nodes", "10", "--only", only) as up:
        yield up
