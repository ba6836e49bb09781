"""Killed, stopped, resumed: the same files as an uninterrupted run, byte for byte."""

import json
import random
import signal
import time

import polars as pl
import programs
import pytest

COMPARED = ("metrics.parquet", "model.safetensors", "spec.toml")
KILLS = 10


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """An uninterrupted run, and how long it took from the command to its first round."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "spec.toml").write_text(programs.SLOW_SPEC)
    began = time.monotonic()
    done = programs.run("run", "spec.toml", "--out", "run", "--quiet", cwd=folder)
    assert done.returncode == 0, done.stderr
    train_seconds = json.loads((folder / "run" / "summary.json").read_text())["train_seconds"]
    return folder / "run", time.monotonic() - began - train_seconds


def checkpoints(folder):
    return {path.name for path in (folder / "checkpoint").glob("round-*")}


def wait_for_a_checkpoint_beside(known, folder, process):
    while checkpoints(folder) <= known and process.poll() is None:
        time.sleep(0.01)


def test_a_run_killed_at_ten_random_moments_is_the_uninterrupted_run(whole_run, tmp_path, monkeypatch):
    whole, startup = whole_run
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.05")
    (tmp_path / "spec.toml").write_text(programs.SLOW_SPEC)
    chance = random.Random(20240715)
    saved = set()
    for number in range(KILLS):
        known = (tmp_path / "run" / "spec.toml").exists()
        arguments = ["run", "--resume", "run"] if known else ["run", "spec.toml", "--out", "run"]
        process = programs.start(*arguments, "--quiet", cwd=tmp_path)
        if number % 2:
            wait_for_a_checkpoint_beside(saved, tmp_path / "run", process)
            time.sleep(chance.uniform(0.0, 0.1))
        else:
            time.sleep(chance.uniform(0.5, startup))
        process.kill()
        process.communicate()
        saved |= checkpoints(tmp_path / "run")
    assert len(saved) >= 3, "too few kills came after a checkpoint"
    done = programs.run("run", "--resume", "run", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in COMPARED:
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes(), name
    one, two = (json.loads((folder / "summary.json").read_text()) for folder in (whole, tmp_path / "run"))
    times = ("compile_seconds", "train_seconds")
    assert {k: v for k, v in one.items() if k not in times} == {
        k: v for k, v in two.items() if k not in times
    }
    assert not list((tmp_path / "run").glob(".*"))


def test_control_c_leaves_a_directory_to_resume_and_says_how(whole_run, tmp_path, monkeypatch):
    whole, _ = whole_run
    # A busy machine may have no time to save when the signal comes: then the one before it is there.
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.05")
    (tmp_path / "spec.toml").write_text(programs.SLOW_SPEC)
    process = programs.start("run", "spec.toml", "--out", "run", cwd=tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if "round" in line:
            break
    while not list((tmp_path / "run").glob("checkpoint/*/history.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "safari run --resume run" in messages
    assert "Traceback" not in messages
    checkpoint = max((tmp_path / "run" / "checkpoint").iterdir())
    assert 0 < len(pl.read_parquet(checkpoint / "history.parquet")) < 250
    assert programs.run("run", "--resume", "run", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "metrics.parquet").read_bytes() == (whole / "metrics.parquet").read_bytes()
    again = programs.run("run", "--resume", "run", cwd=tmp_path)
    assert again.returncode == 0
    assert "finished already" in again.stderr


def test_a_second_writer_is_refused(tmp_path):
    (tmp_path / "spec.toml").write_text(programs.SLOW_SPEC.replace("250", "100000"))
    first = programs.start("run", "spec.toml", "--out", "run", "--quiet", cwd=tmp_path)
    try:
        while not (tmp_path / "run" / "spec.toml").exists():
            assert first.poll() is None
            time.sleep(0.05)
        second = programs.run("run", "--resume", "run", cwd=tmp_path)
        assert second.returncode == 2
        assert second.stderr == f"safari: --resume = run: process {first.pid} is writing to it\n"
    finally:
        first.kill()
        first.communicate()
