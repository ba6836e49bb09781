"""`--processes`: the directory of one process, whatever dies on the way."""

import os
import pickle
import signal
import time
from pathlib import Path

import places
import programs
import psutil
import pytest

from safari.errors import InputError
from safari.experiment.checksums import Damaged
from safari.experiment.sweep.places import mps

SOON = 6.0
"""Seconds. Two are promised; the machine that tests may be busy."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With a sweep that was trained in one process."""
    folder = tmp_path_factory.mktemp("places")
    places.write_own(folder, rounds=1500)
    done = programs.run("sweep", "sweep.toml", "--out", "whole", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def workers(process) -> list[psutil.Process]:
    return psutil.Process(process.pid).children()


def wait_for(condition, process) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def begun(folder: Path, process) -> list[psutil.Process]:
    """The workers of a sweep, once it has saved the state of a run."""
    wait_for(lambda: list(folder.glob("unfinished/*/round-*")), process)
    return workers(process)


def test_several_processes_write_the_directory_of_one(folder):
    done = programs.run("sweep", "sweep.toml", "--processes", "2", "--out", "several", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    places.assert_equal(folder / "whole", folder / "several")


def test_a_killed_worker_and_a_killed_command_lose_nothing(folder, monkeypatch):
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.05")
    arguments = ("sweep", "sweep.toml", "--processes", "2", "--out", "killed", "--quiet")
    process = programs.start(*arguments, cwd=folder)
    first = begun(folder / "killed", process)
    first[0].kill()
    wait_for(lambda: set(workers(process)) - set(first), process)
    left = workers(process)
    process.kill()
    process.communicate()
    assert not psutil.wait_procs(left, timeout=SOON)[1]
    done = programs.run("sweep", "--resume", "killed", "--processes", "2", "--quiet", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    places.assert_equal(folder / "whole", folder / "killed")


def test_one_signal_stops_the_command_and_its_workers(folder, monkeypatch):
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.05")
    arguments = ("sweep", "sweep.toml", "--processes", "2", "--out", "stopped", "--quiet")
    process = programs.start(*arguments, cwd=folder)
    left = begun(folder / "stopped", process)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert not psutil.wait_procs(left, timeout=SOON)[1]
    assert time.monotonic() - began < SOON
    assert said.splitlines()[-1] == "stopped; go on with: safari sweep --resume stopped"
    assert not list((folder / "stopped").rglob(".*"))


@pytest.mark.parametrize(
    ("at_import", "code", "says"),
    [
        ("raise ImportError('not on a worker')", 2, "cannot import there what the spec names"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 1, "a run was begun 3 times and lost each time"),
    ],
)
def test_what_fails_in_a_worker_is_told_in_one_line(tmp_path, at_import, code, says):
    """Workers are started by `python -c`, which no command is."""
    places.write_own(tmp_path)
    only_there = f"\nimport os, signal, sys\nif sys.argv[0] == '-c':\n    {at_import}\n"
    (tmp_path / "helpers.py").write_text(places.HELPERS + only_there)
    one_run = ("sweep", "sweep.toml", "sweep.seeds=1", "sweep.grid={}")
    done = programs.run(*one_run, "--processes", "2", "--out", "all", "--quiet", cwd=tmp_path)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


@pytest.mark.parametrize(
    "error", [InputError("train.rounds", 0, "must be at least 1"), Damaged("a.parquet", "is damaged")]
)
def test_errors_come_from_another_process_as_they_were(error):
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_the_service_that_shares_a_gpu_is_started_and_stopped(tmp_path, monkeypatch):
    """A stand-in for NVIDIA's command, which notes how it is called and says that no service runs yet."""
    control = tmp_path / mps.CONTROL
    control.write_text(
        f'#!/bin/sh\necho "$*" $(cat) >> {tmp_path}/calls\n[ "$1" = -d ] || [ -e {tmp_path}/on ]\n'
    )
    control.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    workers_have = mps.share_gpu()
    assert Path(workers_have[mps.PIPE]).is_dir()
    monkeypatch.setenv(mps.OURS, workers_have[mps.OURS])
    mps.leave_gpu()
    assert not Path(workers_have[mps.PIPE]).exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [" ".join(call.split()) for call in calls] == ["get_server_list", "-d", "quit -t 1"]
    (tmp_path / "on").touch()
    assert mps.share_gpu() == {}
