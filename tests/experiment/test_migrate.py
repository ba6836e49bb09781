"""What older versions wrote is brought up to date, and then is what today's version would have written."""

import json
import tomllib

import polars as pl
import pytest

from safari.errors import InputError
from safari.experiment.migrate import migrate, new_settings, new_tables
from safari.experiment.spec import complete, load_spec
from safari.experiment.sweep import load_sweep, new_sweep, read_sweep, resume_sweep

OLD_SPEC = """
# how it was written before
[data]
source = "digits"
partition = "dirichlet"
clients = 6
alpha = 0.3
classes_per_client = 1
server_samples = 30
server_alpha = 2.0
[train]
rounds = 2
"""
OLD_SETTINGS = {"data.clients": 5, "data.server_samples": 20, "data.server_disjoint": False, "train.seed": 0}
SWEEP = """
[data.partition]
samples_per_client = 60
[algorithm.server]
steps = 2
[train]
rounds = 3
[sweep.grid]
data.server.samples = [20, 30]
"""
OLD_COLUMNS = {
    "accuracy_round": "accuracy_last",
    "accuracy_round_last10": "accuracy_mean_last10",
    "curve_accuracy": "curve_accuracy_synced",
    "curve_accuracy_round": "curve_accuracy",
    "curve_loss_round": "curve_loss",
}
OLD_KEYS = {
    "data.server.samples": "data.server_samples",
    "data.partition.samples_per_client": "data.samples_per_client",
}


def test_a_spec_is_rewritten_by_todays_keys(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text(OLD_SPEC)
    with pytest.raises(InputError, match=r"data\.clients = 6: is data\.partition\.clients now"):
        load_spec(path)
    assert "rewritten" in migrate(path)
    data = load_spec(path).tables["data"]
    assert data["partition"] == {
        "name": "dirichlet", "clients": 6, "alpha": 0.3, "samples_per_client": None, "size_skew": 0.0,
    }  # fmt: skip
    assert (data["server"]["samples"], data["server"]["alpha"]) == (30, 2.0)
    assert (tmp_path / "old.toml.old").read_text() == OLD_SPEC
    assert migrate(path) == f"{path} is up to date"


def test_a_grid_is_rewritten_too():
    fresh = new_tables({"sweep": {"seeds": 2, "grid": {"data": {"server_samples": [5, 9]}}}})
    assert fresh["sweep"] == {"seeds": 2, "grid": {"data": {"server": {"samples": [5, 9]}}}}


def test_settings_name_the_same_federation_as_before():
    fresh = new_settings(OLD_SETTINGS)
    assert fresh == {
        "data.partition.clients": 5,
        "data.server.samples": 20,
        "data.server.disjoint": False,
        "train.seed": 0,
    }
    assert new_settings(fresh) == fresh
    assert new_settings({"data.partition": "client"})["data.partition.name"] == "column"


@pytest.fixture
def old_sweep(tmp_path):
    """A finished sweep as an older version would have left it."""
    spec = tmp_path / "sweep.toml"
    spec.write_text(SWEEP)
    path = tmp_path / "sweep"
    results = new_sweep(load_sweep(spec), path, lambda progress: None, tomllib.loads(SWEEP))

    def as_before(settings):
        return {OLD_KEYS.get(name, name): value for name, value in settings.items()}

    for file in (path / "finished").glob("*.parquet"):
        table = pl.read_parquet(file).rename(OLD_COLUMNS).drop("both_rounds", "commit")
        settings = [json.dumps(as_before(json.loads(text))) for text in table["settings"]]
        table = table.with_columns(
            pl.Series("settings", settings),
            pl.lit("of old").alias("cell"),
            pl.col("accuracy").alias("accuracy_synced"),
        )
        table.write_parquet(path / "finished" / f"{file.name[:12]}.parquet")
        file.unlink()
    (path / "SHA256SUMS").unlink()
    plan = json.loads((path / "cells.json").read_text())
    old = {
        "base": {
            "data": {"samples_per_client": 60},
            "algorithm": {"server": {"steps": 2}},
            "train": {"rounds": 3},
        }
    }
    old["cells"] = [as_before(settings) for settings in plan["cells"]]
    (path / "cells.json").write_text(json.dumps(old))
    return path, results


def test_a_sweep_of_old_reads_as_if_it_were_of_today(old_sweep):
    path, results = old_sweep
    assert "2 finished runs rewritten" in migrate(path)
    cells, finished = read_sweep(path)
    assert [cell.key for cell in cells] == finished["cell"].to_list() == results["cell"].to_list()
    for column in (
        "accuracy",
        "accuracy_round",
        "accuracy_round_last10",
        "curve_accuracy",
        "curve_accuracy_round",
    ):
        assert finished[column].to_list() == results[column].to_list()
    assert len(resume_sweep(path, lambda progress: None)) == 2
    assert migrate(path) == f"{path} is up to date"


def test_what_is_not_ours_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no spec, finished run or sweep"):
        migrate(tmp_path)


def test_the_defaults_of_today_need_no_migration():
    assert new_tables(complete({}).plain()) == complete({}).plain()
