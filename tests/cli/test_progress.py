"""Progress: a live bar on a terminal, plain lines elsewhere, nothing if quiet."""

import os
import pty
import subprocess

import programs

SPEC = programs.EXAMPLES / "digits.toml"


def test_plain_lines_when_not_on_a_terminal(tmp_path):
    done = programs.run("run", SPEC, "train.rounds=20", "--out", "run", cwd=tmp_path)
    assert "run: round 20/20, " in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert "accuracy, delivered model" in done.stdout


def test_quiet_prints_the_path_alone(tmp_path):
    done = programs.run("run", SPEC, "train.rounds=5", "--out", "run", "--quiet", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("run\n", "")


def test_a_live_bar_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    command = programs.command("run", SPEC, "train.rounds=60", "--out", "run")
    environment = {**programs.environment(), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait() == 0
    text = shown.decode()
    assert "60/60" in text
    assert "rounds/s" in text
    assert "accuracy" in text


def test_without_out_a_free_folder_is_taken(tmp_path):
    first, second = (
        programs.run("run", SPEC, "train.rounds=2", "--quiet", cwd=tmp_path).stdout for _ in range(2)
    )
    assert (first, second) == ("runs/digits\n", "runs/digits-2\n")


def test_the_data_sets_are_listed(tmp_path):
    listed = programs.run("data", "list", cwd=tmp_path).stdout
    for name in ("digits", "mnist", "fashion-mnist", "cifar10"):
        assert name in listed
