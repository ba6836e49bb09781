"""The tests of a fleet leave nothing running, also if they are stopped in the middle."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from fleet_processes import PATIENCE, STARTED, wait_for

HERE = Path(__file__).parent
HANGS = """
import subprocess
import time
from pathlib import Path

from fleet_processes import started


def test_that_hangs():
    daemon = subprocess.Popen(["sleep", "987654"], start_new_session=True)
    started("a daemon")
    Path("daemon.txt").write_text(str(daemon.pid))
    time.sleep(987654)
"""


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGTERM])
def test_a_session_that_is_stopped_in_the_middle_ends_what_it_started(tmp_path, stopped_by):
    for name in ("conftest.py", "fleet_processes.py"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "test_hangs.py").write_text(HANGS)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", STARTED))}
    command = [sys.executable, "-m", "pytest", "--numprocesses", "1", "-p", "no:cacheprovider", "."]
    log, daemon = tmp_path / "log", tmp_path / "daemon.txt"
    with log.open("w") as file:
        session = subprocess.Popen(
            command, cwd=tmp_path, env=own, stdout=file, stderr=file, start_new_session=True
        )
    try:
        wait_for(lambda: daemon.exists() and daemon.read_text(), log.read_text)
        session.send_signal(stopped_by)
        session.wait(timeout=PATIENCE)
        assert session.returncode != 0
        said = log.read_text()
        assert "a daemon" in said
        assert "LEFT RUNNING, now ended: " in said
        assert not psutil.pid_exists(int(daemon.read_text()))
    finally:
        session.kill()
        if daemon.exists() and psutil.pid_exists(int(daemon.read_text())):
            os.kill(int(daemon.read_text()), signal.SIGKILL)
