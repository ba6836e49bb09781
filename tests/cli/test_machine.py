"""A few of the trials of `make machine`: no room, no rights, no stdout."""

import zlib

import pytest

from fuzz.making import make_all
from machine.rooms import commands, rooms
from machine.streams import streams
from machine.trials import Trials, write_samples
from safari.engine.compiled import throw_unreadable_away

NO_ROOM = {"run": (0, 2000), "report": (100,), "merge": (100,), "compare DIRECTORY": (2000,)}


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("run", "sweep.task"):
            patch.setattr(f"safari.experiment.{module}.CHECKPOINT_SECONDS", 0.0)
        folder = tmp_path_factory.mktemp("ready")
        make_all(folder, ("half-a-run", "run", "half-a-sweep", "sweep"))
        write_samples(folder)
        return folder


def test_without_room_a_command_says_where_and_then_gives_the_same_result(ready):
    trials = Trials()
    for command in commands():
        if command.name in NO_ROOM:
            rooms(trials, ready, [command], disks=(), limits=NO_ROOM[command.name])
    assert not trials.failures
    assert sum(trials.counts.values()) == sum(len(limits) for limits in NO_ROOM.values())


def test_a_stdout_that_is_closed_or_full_is_said_in_one_line(ready):
    trials = Trials()
    streams(
        trials,
        ready,
        dict.fromkeys(("--version", "data list"), ("stdout closed", "stdout full", "stdout left early")),
    )
    streams(trials, ready, {"run --resume run": ("ASCII only",)})
    assert not trials.failures


def test_kept_programs_that_cannot_be_read_are_thrown_away(tmp_path, monkeypatch):
    sound, cut = tmp_path / "sound-cache", tmp_path / "cut-cache"
    sound.write_bytes(zlib.compress(b"program"))
    cut.write_bytes(zlib.compress(b"program")[:-4])
    monkeypatch.setattr("safari.engine.compiled.kept_programs", lambda: tmp_path)
    throw_unreadable_away()
    assert [file.name for file in tmp_path.iterdir()] == [sound.name]
    monkeypatch.setattr("safari.engine.compiled.kept_programs", lambda: tmp_path / ("too long" * 100))
    throw_unreadable_away()
