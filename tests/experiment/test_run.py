"""The run directory holds what it promises."""

import json
import tomllib

import numpy as np
import polars as pl
import programs
import pytest
from safetensors.numpy import load_file

import safari
from safari.engine.result import HISTORY_SCHEMA
from safari.experiment.spec import complete

SUMMARY_KEYS = {
    "accuracy", "accuracy_round", "accuracy_round_last10", "rounds", "client_rounds",
    "server_rounds", "idle_rounds", "bytes_up", "bytes_down", "covered_classes", "accuracy_ceiling",
    "compile_seconds", "train_seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    arguments = (
        "run",
        programs.EXAMPLES / "digits.toml",
        "algorithm.q=0.6",
        "train.rounds=30",
        "--out",
        "runs/a",
    )
    done = programs.run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("runs/a")
    return folder / "runs" / "a"


def test_everything_is_there(finished):
    names = {path.name for path in finished.iterdir()} - {"lock"}
    expected = {
        "spec.toml",
        "metrics.parquet",
        "summary.json",
        "model.safetensors",
        "curves.png",
        "checkpoint",
        "SHA256SUMS",
    }
    assert names == expected
    assert (finished / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_summary_says_what_the_history_says(finished):
    summary = json.loads((finished / "summary.json").read_text())
    history = pl.read_parquet(finished / "metrics.parquet")
    assert set(summary) >= SUMMARY_KEYS
    assert dict(history.schema) == HISTORY_SCHEMA
    assert summary["rounds"] == len(history) == 30
    assert summary["client_rounds"] + summary["server_rounds"] == 30
    assert summary["accuracy"] == history["accuracy"][-1]
    assert summary["accuracy_round_last10"] == pytest.approx(history["accuracy_round"].tail(10).mean())
    assert summary["bytes_up"] == history["bytes_up"].sum() > 0
    assert len(summary["covered_classes"]) == 6


def test_the_directory_equals_the_same_run_in_python(finished):
    spec = complete(tomllib.loads((finished / "spec.toml").read_text()))
    train = spec.tables["train"]
    federation = spec.federation()
    result = safari.train(
        federation,
        spec.algorithm(),
        model=spec.model(federation),
        participation=spec.participation(),
        **train,
    )
    assert result.history.equals(pl.read_parquet(finished / "metrics.parquet"))
    saved = load_file(finished / "model.safetensors")
    assert saved.keys() == result.params.keys()
    for name, value in saved.items():
        np.testing.assert_array_equal(value, result.params[name])


def test_a_comparison_ends_in_a_table_and_a_picture(tmp_path):
    arguments = (
        "compare",
        programs.EXAMPLES / "digits.toml",
        "train.rounds=40",
        "--seeds",
        "2",
        "--out",
        "runs/b",
    )
    done = programs.run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(tmp_path / "runs" / "b" / "comparison.csv")
    assert table["algorithm"].to_list() == ["fedavg", "server-only", "safari"]
    results = pl.read_parquet(tmp_path / "runs" / "b" / "results.parquet")
    for name in table["algorithm"]:
        assert name in done.stdout
        values = results.filter(pl.col("algorithm.name") == name)["accuracy"].to_list()
        assert len(values) == 2
        row = table.filter(pl.col("algorithm") == name)
        assert row["accuracy_mean"][0] == pytest.approx(np.mean(values))
        assert row["accuracy_std"][0] == pytest.approx(np.std(values, ddof=1))
    assert done.stdout.strip().endswith("curves.png")
    again = programs.run("compare", "--resume", "runs/b", cwd=tmp_path)
    assert again.returncode == 0
    assert pl.read_csv(tmp_path / "runs" / "b" / "comparison.csv").equals(table)


def test_a_diverging_run_says_where_and_fails(tmp_path):
    arguments = (
        "run",
        programs.EXAMPLES / "digits.toml",
        "algorithm.clients.local_rate=1e6",
        "algorithm.name=fedavg",
    )
    done = programs.run(*arguments, "--out", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "safari: training diverged in round 1 with a test loss of" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["diverged_at"] == 1
    assert not (tmp_path / "run" / "model.safetensors").exists()
