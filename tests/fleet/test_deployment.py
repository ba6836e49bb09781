"""SAFARI on a SuperLink and SuperNodes that are processes of their own, four of ten never started."""

import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
from fleet_processes import ABSENT, BIN, PATIENCE, environment
from safetensors.numpy import load_file

from safari.engine.training import Training
from safari.experiment.spec import load_spec

SPEC = Path(__file__).parent / "digits.toml"


def simulated(*overrides: str):
    training = Training(load_spec(SPEC, overrides).prepare())
    while not training.finished:
        training.advance()
    return training.result()


def test_a_spec_trains_on_real_clients_as_it_was_simulated(fleet, tmp_path):
    app = tmp_path / "digits-fleet"
    subprocess.run([BIN / "safari", "flower", "deploy", SPEC, "--out", app], check=True)
    subprocess.run([BIN / "flwr", "build", "--app", app], check=True, cwd=tmp_path, env=environment())
    found = {}
    for name, overrides in (("safari", ""), ("fedavg", "algorithm.name=fedavg train.rounds=3")):
        state = fleet.work / name
        config = {
            "checkpoint": str(state),
            "overrides": overrides,
            "start_deadline": 0.0,
            "round_deadline": PATIENCE,
        }
        fleet.finish(fleet.start(app, **config), state)
        expected = simulated(*overrides.split())
        summary = json.loads((state / "summary.json").read_text())
        assert abs(summary["accuracy"] - expected.accuracy) < 0.02
        history = pl.read_parquet(state / "metrics.parquet")
        assert history["kind"].to_list() == expected.history["kind"].to_list()
        assert history["cohort"].to_list() == expected.history["cohort"].to_list()
        assert set(summary["never_took_part"]) >= set(map(str, ABSENT))
        model = load_file(state / "model.safetensors")
        np.testing.assert_allclose(model["weight"], expected.params["weight"], atol=1e-5)
        found[name] = summary["accuracy"]
    assert found["fedavg"] < 0.62
    assert found["safari"] > found["fedavg"] + 0.1
