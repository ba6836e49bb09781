"""A fleet that misbehaves: killed, hung, NaN, wrong shapes, and a server that dies."""

import json

import numpy as np
import polars as pl
from fleet_processes import ABSENT, NAUGHTY
from safetensors.numpy import load_file

from safari.result import HISTORY_SCHEMA


def test_faults_of_all_kinds_do_not_stop_the_training(fleet):
    state = fleet.work / "faults"
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
