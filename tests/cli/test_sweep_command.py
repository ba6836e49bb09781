"""The commands of sweeps: plans, wrong uses, and what they leave behind."""

import pytest
from typer.testing import CliRunner

from safari.cli import app

SPEC = """
[data.partition]
samples_per_client = 100
[data.server]
samples = 20
[algorithm.server]
steps = 2
[train]
rounds = 2
[sweep]
seeds = 2
[sweep.grid]
algorithm.name = ["fedavg", "safari"]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(SPEC)
    (tmp_path / "empty").mkdir()
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_sweep_from_the_plan_to_the_page(place):
    plan = call("sweep", "sweep.toml", "--dry-run")
    assert plan.exit_code == 0
    assert "4 runs, 2 programs" in plan.output
    assert not (place / "runs").exists()
    done = call("sweep", "sweep.toml", "--quiet")
    assert done.exit_code == 0, done.output
    assert "safari - fedavg" in done.output
    assert {path.name for path in (place / "runs" / "sweep-sweep").iterdir()} >= {
        "spec.toml", "cells.json", "finished", "results.parquet", "table.csv",
    }  # fmt: skip
    again = call("sweep", "--resume", "runs/sweep-sweep", "--quiet")
    assert again.exit_code == 0
    assert call("report", "runs/sweep-sweep").exit_code == 0
    assert "fedavg" in (place / "runs" / "sweep-sweep" / "report.html").read_text()
    for command in ("run", "compare", "reproduce"):
        wrong = call(command, "--resume", "runs/sweep-sweep")
        assert wrong.exit_code == 2
        assert "sweep" in wrong.output or "reproduce" in wrong.output


def test_tables_as_values_no_grid_and_damaged_files(place):
    patterns = 'sweep.grid={participation={availability=[{name="always"}, {name="bernoulli"}]}}'
    done = call("sweep", "sweep.toml", patterns, "sweep.seeds=1", "--out", "a", "--quiet")
    assert done.exit_code == 0, done.output
    assert call("report", "a").exit_code == 0
    done = call("sweep", "sweep.toml", "sweep.grid={}", "--out", "b", "--quiet")
    assert done.exit_code == 0, done.output
    assert call("report", "b").exit_code == 0
    again = call("sweep", "b/spec.toml", "--dry-run")
    assert again.exit_code == 0, again.output
    damaged = next((place / "b" / "finished").iterdir())
    damaged.write_bytes(b"half a file")
    for arguments in (["sweep", "--resume", "b", "--quiet"], ["report", "b"]):
        refused = call(*arguments)
        assert refused.exit_code == 2
        assert damaged.name in refused.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sweep"], "needs a SPEC"),
        (["sweep", "sweep.toml", "--resume", "empty"], "not both"),
        (["sweep", "--resume", "empty", "--dry-run"], "--dry-run"),
        (["sweep", "--resume", "empty"], "no spec.toml"),
        (["sweep", "missing.toml"], "no such file"),
        (["sweep", "sweep.toml", "--out", "empty"], "exists"),
        (["sweep", "sweep.toml", "--share", "3/2"], "1 <= k <= n"),
        (["sweep", "sweep.toml", "--share", "one"], "1 <= k <= n"),
        (["sweep", "sweep.toml", "--share", "20/20"], "only 4 runs"),
        (["sweep", "--resume", "empty", "--share", "1/2"], "--share"),
        (["sweep", "sweep.toml", "sweep.grid.algorithm.q=[2]"], "algorithm.q"),
        (["reproduce"], "needs mnist"),
        (["reproduce", "imagenet"], "must be among"),
        (["reproduce", "fedavg", "--seeds", "0"], "--seeds"),
        (["reproduce", "cifar10_m", "mnist"], "no such table"),
        (["reproduce", "--resume", "empty"], "safari reproduce"),
        (["report", "empty"], "spec.toml"),
        (["report", "missing"], "spec.toml"),
    ],
)
def test_wrong_uses_end_in_one_line(place, arguments, says):
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    lines = [line for line in done.output.splitlines() if line.strip()]
    assert len(lines) == 1
    assert says in lines[0]
    assert sorted(path.name for path in place.iterdir()) == ["empty", "sweep.toml"]
