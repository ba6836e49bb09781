"""`--on ray`: the directory of one process. benchmarks/ray_cluster.py has three machines, and kills them."""

import tempfile

import places
import programs
import pytest


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Ray starts a cluster for the command, which joins no other that runs here, and which no other joins."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'safari-fl[ray]'")
    with tempfile.TemporaryDirectory(prefix="ray-") as short:
        monkeypatch.setenv("RAY_ADDRESS", "local")
        monkeypatch.setenv("RAY_TMPDIR", short)
        monkeypatch.setenv("RAY_worker_niceness", "0")
        yield tmp_path


def test_a_cluster_of_ones_own_writes_the_directory_of_one_process(alone):
    places.write_own(alone)
    for arguments in (("--out", "whole"), ("--out", "cluster", "--on", "ray")):
        done = programs.run("sweep", "sweep.toml", *arguments, "--quiet", cwd=alone)
        assert (done.returncode, done.stderr) == (0, "")
    places.assert_equal(alone / "whole", alone / "cluster")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--on", "slurm"), 2, "must be ray, or ray://HOST:PORT"),
        (("--on", "ray", "--processes", "0"), 2, "--processes"),
        (("--on", "ray", "--resume", "nowhere"), 2, "not both"),
    ],
)
def test_wrong_uses_end_in_one_line_and_write_nothing(alone, arguments, code, says):
    places.write_own(alone)
    done = programs.run("sweep", "sweep.toml", *arguments, "--quiet", cwd=alone)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert not (alone / "runs").exists()


def test_a_cluster_that_is_not_there_ends_in_one_line(alone, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    places.write_own(alone)
    done = programs.run("sweep", "sweep.toml", "--on", "ray", "--quiet", cwd=alone)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no cluster to train on" in done.stderr
    assert not (alone / "runs").exists()
