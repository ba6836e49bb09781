"""One signal stops any command: soon, with its exit code, with no traceback and nothing half written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import programs
import pytest

SOON = 6.0
"""Seconds. Two are promised; the machine that tests may be busy."""
SPEC = programs.SLOW_SPEC.replace("rounds = 250", "rounds = 100000")


def looks_after_signals(process: subprocess.Popen[str]) -> bool:
    """Whether the command has come so far that SIGTERM no longer just ends it."""
    if not Path("/proc/self/status").exists():
        time.sleep(0.3)
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def wait_for(condition, process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None
        time.sleep(0.005)


def stopped(process: subprocess.Popen[str], number: int) -> str:
    """What a command says that is sent a signal; checks that it ends as it should."""
    began = time.monotonic()
    process.send_signal(number)
    try:
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 128 + number, said
    assert time.monotonic() - began < SOON
    assert "Traceback" not in said
    assert "stopped" in said.splitlines()[-1]
    return said


@pytest.fixture(autouse=True)
def hears_the_end_of_the_terminal():
    """Under `nohup` the tests, and what they start, ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


@pytest.mark.parametrize("command", ["run", "sweep", "compare", "advise"])
def test_while_the_command_is_being_imported(folder, command):
    process = programs.start(command, "spec.toml", "--out", "run", cwd=folder)
    wait_for(lambda: looks_after_signals(process), process)
    assert stopped(process, signal.SIGINT) == "stopped\n"
    assert sorted(folder.iterdir()) == [folder / "spec.toml"]


def test_while_a_run_compiles(folder):
    """No program is kept here, and this one takes longer to compile than a signal may take."""
    words = ["model={name='cnn'}", "--out", "run"]
    command = programs.command("run", "spec.toml", *words)
    environment = {**programs.environment(), "JAX_ENABLE_COMPILATION_CACHE": "false", "XLA_FLAGS": ""}
    process = subprocess.Popen(command, cwd=folder, env=environment, text=True, stderr=subprocess.PIPE)
    wait_for((folder / "run").exists, process)
    time.sleep(0.3)
    assert "go on with: safari run --resume run" in stopped(process, signal.SIGTERM)
    assert not list(folder.rglob(".*"))


def test_while_a_sweep_trains(folder, monkeypatch):
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.05")
    arguments = ("sweep", "spec.toml", "sweep.seeds=3", "--out", "all", "--quiet")
    process = programs.start(*arguments, cwd=folder)
    wait_for((folder / "all" / "unfinished").exists, process)
    assert "go on with: safari sweep --resume all" in stopped(process, signal.SIGHUP)
    assert not list(folder.rglob(".*"))


WRITES = """
import os, signal, sys, time
from safari.cli import signals
from safari.experiment.directory import write_file
from safari.experiment.writing import writing
from pathlib import Path

signals.look_after()
with writing():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1.0)
    write_file(Path("whole"), b"all of it")
write_file(Path("another"), b"too late")
"""
IGNORES = """
import signal
from safari.cli import signals

signal.signal(signal.SIGINT, signal.SIG_IGN)
signals.look_after()
signal.raise_signal(signal.SIGINT)
print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
"""


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_file_that_is_being_written_is_waited_for_and_no_other_is_begun(tmp_path):
    done = python(WRITES, tmp_path)
    assert done.returncode == 130
    assert done.stderr.splitlines() == [
        "waiting for a file that is being written; press Ctrl-C again to stop at once",
        "stopped",
    ]
    assert os.listdir(tmp_path) == ["whole"]


def test_a_signal_that_the_shell_ignores_stays_ignored(tmp_path):
    done = python(IGNORES, tmp_path)
    assert (done.returncode, done.stdout) == (0, "True\n")
