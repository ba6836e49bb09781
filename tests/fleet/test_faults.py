"""A fleet that misbehaves: killed, hung, NaN, wrong shapes, and a server that dies."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
from fleet_processes import ABSENT, NAUGHTY, wait_for
from safetensors.numpy import load_file

from safari.flower.journal import ROUNDS_SCHEMA

FAULTS = (
    "client 0 rejected: w is not finite",
    r"client 1 rejected: w has shape \(5,\)",
    "client 2 late",
    "client 5 (late|left|failed)",
)


def seen(state: Path) -> list[int]:
    """The clients that have said who they are, as the last checkpoint has it."""
    saved = sorted((state / "checkpoint").glob("round-*/about.json"))
    try:
        return json.loads(saved[-1].read_text())["fleet"]["seen"]
    except (IndexError, FileNotFoundError):
        return []


def test_faults_of_all_kinds_do_not_stop_the_training(fleet):
    state = fleet.work / "faults"
    config = {"deadline": 20.0, "checkpoint": str(state), "nan": 0, "shape": 1, "sleep": 2}
    run = fleet.start(NAUGHTY, rounds=999, **config)
    wait_for(lambda: 5 in seen(state), fleet.said)
    fleet.kill("flower-supernode", "partition-id=5 ")
    for fault in FAULTS:
        fleet.wait_until(fault)
    done = len(re.findall("round [0-9]+ of 999", fleet.said()))
    fleet.wait_until(f"round {done + 2} of 999")
    fleet.kill("flwr-serverapp")
    run.kill()
    run.wait()
    about = json.loads((max((state / "checkpoint").glob("round-*")) / "about.json").read_text())
    lines = (state / "checkpoint" / "journal.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if "kind" in row and row["round"] <= about["round"]]
    saved = pl.DataFrame(rows, schema=ROUNDS_SCHEMA).drop("checkpoint_seconds")
    last = len(saved) + 1
    log = fleet.finish(fleet.start(NAUGHTY, rounds=last, **config), state)
    assert f"going on after round {len(saved)} of {last}" in log
    history = pl.read_parquet(state / "metrics.parquet")
    assert history["round"].to_list() == list(range(1, last + 1))
    assert history.select(saved.columns).head(len(saved)).equals(saved)
    events = pl.read_parquet(state / "events.parquet")

    def befell(client: int, event: str) -> int:
        return len(events.filter((pl.col("client") == client) & (pl.col("event") == event)))

    for client in (0, 1, 2):
        assert befell(client, "answered") == 0
    assert befell(0, "rejected") >= 1
    assert befell(1, "rejected") >= 1
    assert befell(2, "late") >= 1
    assert befell(5, "late") + befell(5, "left") + befell(5, "failed") >= 1
    assert befell(7, "answered") >= 1
    assert befell(8, "answered") >= 1
    summary = json.loads((state / "summary.json").read_text())
    assert set(summary["never_took_part"]) >= {*map(str, (0, 1, 2, *ABSENT))}
    model = load_file(state / "model.safetensors")["w"]
    assert np.isfinite(model).all()
    most = 100 if "server" in history["kind"] else 8  # what the server and client 8 pull to
    assert (model <= most).all()
