"""One writer at a time: the lock of a run directory, and who it says is writing."""

import os
import subprocess
import sys
import threading

import pytest

from machine.rooms import limited_files
from safari.errors import InputError
from safari.experiment.directory import LOCK, SPEC, SUMS, WRITER, Directory

HOLD = """
import sys
from pathlib import Path
from safari.experiment.directory import Directory
directory = Directory.open(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    Directory.create(tmp_path / "run", "").close()
    return tmp_path / "run"


def refused_by(process, path):
    with pytest.raises(InputError, match=f"process {process} is writing to it"):
        Directory.open(path)


def test_a_second_writer_is_refused_even_in_the_same_process(path):
    with Directory.open(path):
        refused_by(os.getpid(), path)
    with Directory.open(path):
        pass


def test_a_new_directory_is_held_by_its_maker(tmp_path):
    with Directory.create(tmp_path / "new", "") as directory:
        refused_by(os.getpid(), directory.path)


def test_folders_made_in_vain_are_removed():
    with limited_files(0) as (folder, make_room):
        (folder / "there").mkdir()
        with pytest.raises(InputError, match="cannot be written"):
            Directory.create(folder / "there" / "new" / "newer" / "run", "[train]")
        make_room()
        assert list(folder.rglob("*")) == [folder / "there"]


def test_what_is_left_when_nobody_writes(path):
    assert {file.name for file in path.iterdir()} <= {LOCK, SPEC, SUMS}


def test_a_killed_process_holds_nothing(path):
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        refused_by(process.pid, path)
        process.kill()
    assert (path / WRITER).read_text() == f"{process.pid}\n"
    with Directory.open(path):
        refused_by(os.getpid(), path)


def test_any_thread_may_close_it(path):
    directory = Directory.open(path)
    thread = threading.Thread(target=directory.close)
    thread.start()
    thread.join()
    Directory.open(path).close()
