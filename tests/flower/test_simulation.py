"""A spec through Flower's simulation engine and through safari's own simulator."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fleet_processes import BIN, PATIENCE, deploying, environment
from safetensors.numpy import load_file

from safari.engine.training import Training
from safari.experiment.spec import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"


def simulate(app: Path, work: Path, config: str) -> str:
    command = deploying(app, "--simulate", "--work", work, "--run-config", config)
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_ten_rounds_are_the_simulators(tmp_path):
    """The example examples/flower/jax, unmodified: logistic regression on the digits."""
    state = tmp_path / "state"
    config = f'rounds=10 simulate-absence=true round-deadline={PATIENCE} checkpoint="{state}"'
    simulate(EXAMPLES / "flower" / "jax", tmp_path / "work", config)
    training = Training(load_spec(EXAMPLES / "digits.toml", ["train.rounds=10"]).prepare())
    while not training.finished:
        training.advance()
    expected = training.result()
    history = pl.read_parquet(state / "metrics.parquet")
    assert "server" in history["kind"].to_list()
    for column in ("round", "kind", "cohort", "reported", "available"):
        assert history[column].to_list() == expected.history[column].to_list(), column
    np.testing.assert_allclose(history["q"], expected.history["q"])
    np.testing.assert_allclose(history["accuracy"], expected.history["accuracy"], atol=1e-6)
    model = load_file(state / "model.safetensors")
    for name, leaf in expected.params.items():
        np.testing.assert_allclose(model[name], leaf, atol=1e-5)
    summary = json.loads((state / "summary.json").read_text())
    assert summary["accuracy"] == pytest.approx(expected.accuracy)


def test_the_pytorch_example_runs_as_it_is(tmp_path):
    state = tmp_path / "state"
    said = simulate(EXAMPLES / "flower" / "pytorch", tmp_path / "work", f'rounds=2 checkpoint="{state}"')
    assert re.search(
        r"safari: \d+ of 10 clients are connected", said
    )  # as many as could say so in ten seconds
    assert len(pl.read_parquet(state / "metrics.parquet")) == 2
    both = tmp_path / "both"
    for command in (["report", state], ["compare", state, state, "--out", both], ["report", both]):
        subprocess.run([BIN / "safari", *command], check=True, env=environment(), cwd=tmp_path)
    assert "state" in (state / "report.html").read_text()


def test_switching_safari_on_takes_less_than_ten_lines():
    app = EXAMPLES / "flower" / "pytorch"
    added = removed = 0
    for name in ("server_app.py", "client_app.py"):
        command = ["diff", app / "stock" / name, app / "torchapp" / name]
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        added += sum(line.startswith(">") for line in lines)
        removed += sum(line.startswith("<") for line in lines)
    assert 0 < added < 10
    assert removed < added


def test_the_jax_example_is_what_deploy_writes(tmp_path):
    subprocess.run(
        [BIN / "safari", "flower", "deploy", EXAMPLES / "digits.toml", "--out", tmp_path / "jax"], check=True
    )
    ours = EXAMPLES / "flower" / "jax"
    written = {path.relative_to(tmp_path / "jax") for path in (tmp_path / "jax").rglob("*") if path.is_file()}
    assert written == {
        p.relative_to(ours) for p in ours.rglob("*") if p.is_file() and "__pycache__" not in str(p)
    }
    for name in written:
        assert (tmp_path / "jax" / name).read_text() == (ours / name).read_text(), name


def test_safari_needs_no_flower():
    without = "import sys; sys.modules['flwr'] = None; "
    code = without + "import safari, safari.cli; safari.train; safari.Safari()"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = without + "import safari.cli; safari.cli.app(['flower', 'deploy', 'x.toml'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "safari-fl[flower]" in done.stderr


def test_the_docs_show_the_change_and_the_cost_as_they_are():
    docs = (EXAMPLES.parent / "docs" / "flower.md").read_text()
    app = EXAMPLES / "flower" / "pytorch"
    for name in ("server_app.py", "client_app.py"):
        command = ["diff", app / "stock" / name, app / "torchapp" / name]
        for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
            if line.startswith(("< ", "> ")) and line[2:]:
                assert line.replace("< ", "-", 1).replace("> ", "+", 1) in docs
    docs = (EXAMPLES.parent / "docs" / "flower-operations.md").read_text()
    result = json.loads((EXAMPLES.parent / "benchmarks" / "results" / "flower.json").read_text())
    assert result["bytes_server_rounds"] == 0
    for name in ("fedavg", "safari"):
        assert f"{1e3 * result['median_seconds'][name]:.0f} ms" in docs
    assert f"{result['ratio_per_client_round']:.2f}" in docs
