"""What an operator reads while a federation runs: tables, summary, what clients report, a callback."""

import json
import subprocess
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from flwr.app import MetricRecord
from flwr.serverapp.strategy import FedAvg
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.errors import InputError
from safari.experiment.checksums import Damaged, read_table
from safari.experiment.finished import is_finished
from safari.flower import SafariStrategy, tables

ROUNDS = 8


def carry_out(state, rounds=ROUNDS, app=None, **keys):
    keys = {"q": 0.7, "fleet": 6, "per_round": 3, "start_deadline": 0.0, "round_deadline": 0.5, **keys}
    made = SafariStrategy(server_step=server_step, checkpoint=state, **keys)
    scored = {"evaluate_fn": lambda number, arrays: MetricRecord({"accuracy": number / 10, "loss": 1.0})}
    return made.start(LocalGrid(app or make_app(), nodes(6)), start(), num_rounds=rounds, **scored)


def test_tables_and_summary_are_current_after_every_round(tmp_path):
    state, seen = tmp_path / "state", []

    def look(federation):
        summary = json.loads((state / "summary.json").read_text())
        history = pl.read_parquet(state / "metrics.parquet")
        events = pl.read_parquet(state / "events.parquet")
        participation = pl.read_parquet(state / "participation.parquet")
        assert summary["status"] == "running"
        assert not is_finished(state)
        assert summary["rounds"] == len(history) == federation.done
        assert summary["planned_rounds"] == ROUNDS
        assert summary["accuracy_round"] == pytest.approx(federation.done / 10)
        assert events["round"].max() == max(row["round"] for row in federation.strategy.journal.events)
        assert participation["asked"].sum() == len(events.filter(pl.col("event") == "asked"))
        seen.append(federation.done)

    carry_out(state, on_progress=look)
    assert seen == list(range(1, ROUNDS + 1))
    assert json.loads((state / "summary.json").read_text())["status"] == "finished"
    assert is_finished(state)


def test_the_callback_is_that_of_the_simulator(tmp_path):
    """One function serves both."""
    import safari

    said = []

    def tell(training):
        said.append((training.done, training.rounds, training.finished, len(training.history)))
        assert training.result() is not None

    safari.train(safari.federate("digits"), safari.FedAvg(), rounds=2, on_progress=tell)
    assert said[-1] == (2, 2, True, 2)
    said.clear()
    carry_out(None, rounds=2, on_progress=tell)
    assert said == [(1, 2, False, 1), (2, 2, True, 2)]


def test_what_the_callback_raises_ends_the_run_and_the_round_is_kept(tmp_path):
    def stop(federation):
        if federation.done == 3:
            raise RuntimeError("the lights\nwent out")

    with pytest.raises(RuntimeError):
        carry_out(tmp_path / "state", on_progress=stop)
    summary = json.loads((tmp_path / "state" / "summary.json").read_text())
    assert (summary["status"], summary["error"], summary["rounds"]) == ("failed", "went out", 3)
    carry_out(tmp_path / "state")
    summary = json.loads((tmp_path / "state" / "summary.json").read_text())
    assert (summary["status"], summary["rounds"]) == ("finished", ROUNDS)
    assert "error" not in summary


def test_every_table_has_times_in_utc(tmp_path):
    state, before = tmp_path / "state", datetime.now(UTC)
    carry_out(state, q=1.0)
    after = datetime.now(UTC)
    columns = {"metrics": "time", "events": "time", "participation": "last_answered"}
    for table, column in columns.items():
        times = pl.read_parquet(state / f"{table}.parquet")[column].drop_nulls().to_list()
        assert times
        for text in times:
            time = datetime.fromisoformat(text)
            assert time.utcoffset().total_seconds() == 0
            assert (time - before).total_seconds() > -0.01
            assert time <= after
    updated = json.loads((state / "summary.json").read_text())["updated"]
    assert before < datetime.fromisoformat(updated) <= after
    history = pl.read_parquet(state / "metrics.parquet")
    assert (history["seconds"] > 0).all()
    assert (history["checkpoint_seconds"] > 0).all()


def test_every_reply_has_its_time_and_every_rejection_a_cause(tmp_path):
    def spoil(client, number, arrays, metrics):
        if client == 0:
            arrays = {name: np.full_like(array, np.nan) for name, array in arrays.items()}
        if client == 1:
            raise RuntimeError("broken")
        return arrays, {**metrics, "num-examples": -1.0 if client == 2 else 1.0}

    carry_out(tmp_path / "state", app=make_app(spoil), per_round=6, q=1.0)
    events = pl.read_parquet(tmp_path / "state" / "events.parquet")
    came = events.filter(pl.col("event").is_in(["answered", "rejected", "failed"]))
    assert came["seconds"].is_between(0, 0.5).all()
    causes = {0: {"not finite"}, 2: {"weight"}, 3: {None}}
    for client, expected in causes.items():
        assert set(came.filter(pl.col("client") == client)["cause"]) == expected
    asked = events.filter(pl.col("event") == "asked")
    assert asked["seconds"].is_null().all()


def test_what_clients_report_is_logged_and_kept_also_over_a_restart(tmp_path, caplog):
    app = make_app(extra={"loss": 0.25, "per_class": [0.5, 1.0]})
    keys = {"q": 1.0, "clients": FedAvg(fraction_evaluate=1.0, min_available_nodes=2)}
    expected = carry_out(tmp_path / "whole", app=app, **keys)
    assert "clients report (train): {" in caplog.text
    carry_out(tmp_path / "state", app=app, rounds=3, **keys)
    found = carry_out(tmp_path / "state", app=app, **keys)
    for kept in ("train_metrics_clientapp", "evaluate_metrics_clientapp"):
        whole, cut = getattr(expected, kept), getattr(found, kept)
        assert list(whole) == list(cut) == list(range(1, ROUNDS + 1))
        for number in whole:
            assert set(cut[number]) == set(whole[number])
            for name, value in whole[number].items():
                assert cut[number][name] == pytest.approx(value)
    assert found.train_metrics_clientapp[1]["per_class"] == [0.5, 1.0]
    history = pl.read_parquet(tmp_path / "state" / "metrics.parquet")
    assert history["train_loss"].to_list() == [0.25] * ROUNDS
    assert history["evaluate_loss"].is_not_null().all()


def test_full_files_of_events_are_not_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PART", 20)
    state, inodes = tmp_path / "state", {}

    def look(federation):
        for part in (state / "events.parquet").iterdir():
            inodes.setdefault(part.name, set()).add(part.stat().st_ino)
            assert len(pl.read_parquet(part)) <= 20
        assert len(pl.read_parquet(state / "events.parquet")) == len(federation.events)

    carry_out(state, q=1.0, rounds=20, on_progress=look)
    assert len(inodes) == 7
    assert read_table(state / "events.parquet").equals(pl.read_parquet(state / "events.parquet"))
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=state, check=True)
    carry_out(state, q=1.0, rounds=21)
    assert pl.read_parquet(state / "events.parquet")["round"].max() == 21
    part = min((state / "events.parquet").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(Damaged, match="part-000000"):
        read_table(state / "events.parquet")


def test_a_running_federation_is_not_compared_as_if_it_were_finished(tmp_path):
    from safari.experiment.compare import compare_finished

    def look(federation):
        with pytest.raises(InputError, match="still running"):
            compare_finished([tmp_path / "state"], tmp_path / "both")

    carry_out(tmp_path / "state", rounds=1, on_progress=look)
