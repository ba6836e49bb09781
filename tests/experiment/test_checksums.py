"""A file that is not what safari wrote is noticed, named and never used."""

import shutil
import subprocess
import threading
from contextlib import suppress

import pytest

from safari.errors import InputError
from safari.experiment.checksums import (
    SPEC,
    SUMS,
    Damaged,
    check_files,
    is_checked,
    is_there,
    read_checked,
    read_folder,
    read_spec,
)
from safari.experiment.directory import Directory, write_file

TEXT = "[train]\nrounds = 3\n"


@pytest.fixture
def path(tmp_path):
    with Directory.create(tmp_path / "run", TEXT) as directory:
        directory.write("model", bytes(range(256)))
    return tmp_path / "run"


def save(directory, rounds):
    for round in rounds:
        directory.save_checkpoint(round, {"state": b"%d" % round, "history": b"h"})


def saved(path):
    return sorted(folder.name for folder in (path / "checkpoint").iterdir())


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_what_was_written_is_read(path):
    assert read_checked(path / "model") == bytes(range(256))
    assert read_spec(path) == {"train": {"rounds": 3}}
    assert is_checked(path)
    check_files(path)


@pytest.mark.parametrize("name", [SPEC, "model"])
def test_one_flipped_bit_is_noticed(path, name):
    flip(path / name)
    with pytest.raises(Damaged, match=name) as caught:
        check_files(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", TEXT.replace("3", "4")])
def test_a_changed_spec_is_refused_with_a_way_on(path, text):
    (path / SPEC).write_text(text)
    with pytest.raises(Damaged, match="start anew from it, into another directory"):
        read_spec(path)


def test_a_damaged_list_is_told_from_damaged_files(path):
    flip(path / SUMS)
    with pytest.raises(Damaged, match="SHA256SUMS is damaged; remove it"):
        read_checked(path / "model")
    (path / SUMS).unlink()
    assert read_checked(path / "model") == bytes(range(256))


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_writer_may_be_killed_at_any_moment(path, monkeypatch, writes):
    """Before the list is written, between it and the file, before the list is tidied up."""
    before, real, done = (path / "model").read_bytes(), write_file, []

    def until_killed(target, content, *beside):
        if len(done) == writes:
            raise KeyboardInterrupt
        done.append(target.name)
        real(target, content, *beside)

    monkeypatch.setattr("safari.experiment.directory.write_file", until_killed)
    with Directory.open(path) as directory, suppress(KeyboardInterrupt):
        directory.write("model", b"other")
    assert read_checked(path / "model") == (before if writes < 2 else b"other")
    assert done == [SUMS, "model", SUMS][:writes]


@pytest.mark.parametrize("name", [SPEC, "model"])
def test_a_lost_file_is_missed(path, name):
    (path / name).unlink()
    with pytest.raises(Damaged, match=name):
        check_files(path)


def sums_of(content, name):
    return [line.split()[0] for line in content.decode().splitlines() if line.endswith(f"  {name}")]


def test_a_replaced_file_stands_once_in_the_list(path):
    with Directory.open(path) as directory:
        directory.write("model", b"other")
        directory.write("model", b"other")
    assert len(sums_of((path / SUMS).read_bytes(), "model")) == 1
    assert read_checked(path / "model") == b"other"


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="the program sha256sum is not here")
def test_the_list_is_one_that_sha256sum_checks(path):
    check = ["sha256sum", "--check", "--strict", SUMS]
    assert subprocess.run(check, cwd=path, capture_output=True, check=False).returncode == 0
    flip(path / "model")
    assert subprocess.run(check, cwd=path, capture_output=True, check=False).returncode == 1


def test_an_older_directory_is_read_and_said_to_be_unchecked(path):
    (path / SUMS).unlink()
    (path / SPEC).write_text(TEXT + "[versions]\njax = '0.7'\n")
    assert not is_checked(path)
    with Directory.open(path) as directory, pytest.warns(UserWarning, match="are read unchecked"):
        assert directory.read_spec()["train"] == {"rounds": 3}


def test_an_older_spec_that_lost_its_end_is_refused(path):
    (path / SUMS).unlink()
    with Directory.open(path) as directory, pytest.raises(Damaged, match="start anew"):
        directory.read_spec()
    (path / SPEC).write_text("")
    with pytest.raises(Damaged, match="start anew"):
        read_spec(path)


def test_two_states_are_kept(path):
    with Directory.open(path) as directory:
        save(directory, [10, 20, 30])
        assert saved(path) == ["round-00000020", "round-00000030"]
        assert directory.load_checkpoint()["state"] == b"30"


@pytest.mark.parametrize("damage", [flip, lambda file: file.write_bytes(b""), lambda file: file.unlink()])
@pytest.mark.parametrize("name", ["state", "history", SUMS])
def test_the_state_before_a_damaged_one_is_taken(path, name, damage):
    said = []
    with Directory.open(path, said.append) as directory:
        save(directory, [10, 20])
        damage(path / "checkpoint" / "round-00000020" / name)
        found = directory.load_checkpoint()
        if name == SUMS and found["state"] == b"20":
            return
        assert found["state"] == b"10"
        assert "round-00000020" in said[0]
        assert "going on from round-00000010" in said[0]
        save(directory, [15])
        assert saved(path) == ["round-00000010", "round-00000015"]


def test_without_a_sound_state_it_is_refused(path):
    with Directory.open(path) as directory:
        save(directory, [10])
        flip(path / "checkpoint" / "round-00000010" / "state")
        with pytest.raises(InputError, match="no sound state was saved before it"):
            directory.load_checkpoint()


def test_a_file_more_is_no_harm(path):
    with Directory.open(path) as directory:
        save(directory, [10])
    folder = path / "checkpoint" / "round-00000010"
    assert read_folder(folder) == {"state": b"10", "history": b"h"}


def test_who_reads_while_a_file_is_replaced_sees_the_old_or_the_new(path):
    over = threading.Event()

    def replace():
        with Directory.open(path) as directory:
            for number in range(150):
                directory.write_all({"model": b"%d" % number, "fresh": b"%d" % number})
        over.set()

    before = (path / "model").read_bytes()
    writer = threading.Thread(target=replace)
    writer.start()
    while not over.is_set():
        found = read_checked(path / "model")
        assert found == before or int(found) < 150
        is_there(path / "fresh")
    writer.join()
    assert read_checked(path / "model") == b"149"
