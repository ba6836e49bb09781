"""SAFARI on a SuperLink and SuperNodes that are processes of their own, four of ten never started."""

import json
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fleet_processes import BIN, DEPLOY, Fleet, deployed, environment
from safetensors.numpy import load_file

from safari.experiment.spec import load_spec
from safari.result import HISTORY_SCHEMA
from safari.training import Training

HERE = Path(__file__).parent
NAUGHTY, SPEC = HERE / "naughty", HERE / "digits.toml"
ABSENT = (3, 4, 6, 9)
PRESENT = [client for client in range(10) if client not in ABSENT]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    work = tmp_path_factory.mktemp("fleet") / "work"
    only = " ".join(map(str, PRESENT))
    with deployed(NAUGHTY, work, "--nodes", "10", "--only", only) as up:
        yield up


def simulated(*overrides: str):
    training = Training(load_spec(SPEC, overrides).prepare())
    while not training.finished:
        training.advance()
    return training.result()


def state_of(fleet: Fleet, name: str) -> Path:
    return fleet.work / name


def test_a_spec_trains_on_real_clients_as_it_was_simulated(fleet, tmp_path):
    app = tmp_path / "digits-fleet"
    subprocess.run([BIN / "safari", "flower", "deploy", SPEC, "--out", app], check=True)
    subprocess.run([BIN / "flwr", "build", "--app", app], check=True, cwd=tmp_path, env=environment())
    found = {}
    for name, overrides in (("safari", ""), ("fedavg", "algorithm.name=fedavg train.rounds=3")):
        state = state_of(fleet, name)
        config = {"checkpoint": str(state), "overrides": overrides, "start_deadline": 0.0}
        fleet.finish(fleet.start(app, **config), state, 240)
        expected = simulated(*overrides.split())
        summary = json.loads((state / "summary.json").read_text())
        assert abs(summary["accuracy"] - expected.accuracy) < 0.02
        history = pl.read_parquet(state / "metrics.parquet")
        assert history["kind"].to_list() == expected.history["kind"].to_list()
        assert history["cohort"].to_list() == expected.history["cohort"].to_list()
        assert set(summary["excluded"]) >= set(ABSENT)
        model = load_file(state / "model.safetensors")
        np.testing.assert_allclose(model["weight"], expected.params["weight"], atol=1e-5)
        found[name] = summary["accuracy"]
    assert found["fedavg"] < 0.62
    assert found["safari"] > found["fedavg"] + 0.1


def test_faults_of_all_kinds_do_not_stop_the_training(fleet):
    state = state_of(fleet, "faults")
    config = {"rounds": 3, "deadline": 16.0, "checkpoint": str(state), "nan": 0, "shape": 1, "sleep": 2}
    run = fleet.start(NAUGHTY, **config)
    fleet.wait_until("round 1 of 3", 120)
    fleet.kill("flower-supernode", "partition-id=5 ")
    fleet.wait_until("round 2 of 3", 60)
    fleet.kill("flwr-serverapp")
    run.kill()
    run.wait()
    about = next((state / "checkpoint").glob("round-*")) / "about.json"
    saved = pl.DataFrame(json.loads(about.read_text())["journal"]["rounds"], schema=HISTORY_SCHEMA)
    log = fleet.said() + fleet.finish(fleet.start(NAUGHTY, **config), state, 180)
    history = pl.read_parquet(state / "metrics.parquet")
    assert history["round"].to_list() == [1, 2, 3]
    assert history.head(len(saved)).equals(saved)
    assert f"going on after round {len(saved)} of 3" in log
    events = pl.read_parquet(state / "events.parquet")

    def befell(client: int, event: str) -> int:
        return len(events.filter((pl.col("client") == client) & (pl.col("event") == event)))

    for client in (0, 1, 2):
        assert befell(client, "answered") == 0
    assert befell(0, "rejected") >= 1
    assert befell(1, "rejected") >= 1
    assert befell(2, "late") + befell(2, "failed") >= 1
    assert befell(5, "late") + befell(5, "left") + befell(5, "failed") >= 1
    assert befell(7, "answered") >= 1
    assert befell(8, "answered") >= 1
    for words in (
        "client 0 rejected: w is not finite",
        "client 1 rejected: w has shape (5,)",
        "client 2 late",
    ):
        assert words in log
    summary = json.loads((state / "summary.json").read_text())
    assert set(summary["excluded"]) >= {0, 1, 2, *ABSENT}
    model = load_file(state / "model.safetensors")["w"]
    assert np.isfinite(model).all()
    assert (model <= 8).all()


def test_tls_and_authentication_let_only_registered_nodes_in(tmp_path):
    state = tmp_path / "state"
    done = subprocess.run(
        ["bash", DEPLOY, NAUGHTY, "--work", tmp_path / "work", "--nodes", "10", "--only", "7 8", "--secure",
         "--check-refusals", "--run-config", f'rounds=1 checkpoint="{state}"'],
        env=environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused: unregistered key" in done.stdout
    assert "refused: plaintext" in done.stdout
    assert json.loads((state / "summary.json").read_text())["excluded"] == [0, 1, 2, 3, 4, 5, 6, 9]
