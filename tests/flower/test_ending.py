"""What a run says at its end: which model is delivered, who never took part and why, what it scored."""

import json
import logging
import math

import polars as pl
import pytest
from flwr.app import MetricRecord
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.experiment.finished import is_finished
from safari.flower import SafariStrategy

ROUNDS = 12


def carry_out(state=None, score=None, there=6, app=None, rounds=ROUNDS, **keys):
    """Rounds of which a client's is the last; `score` makes metrics of the number of a round."""
    keys = {"q": 0.7, "fleet": 6, "start_deadline": 0.0, "round_deadline": 0.5, **keys}
    made = SafariStrategy(server_step=server_step, checkpoint=state, **keys)
    evaluate = None if score is None else lambda number, arrays: MetricRecord(score(number))
    made.start(LocalGrid(app or make_app(), nodes(there)), start(), num_rounds=rounds, evaluate_fn=evaluate)
    return made


def last_server_round(made):
    kinds = made.journal.history()["kind"].to_list()
    last = max(number for number, kind in enumerate(kinds, 1) if kind == "server")
    assert last < len(kinds)
    return last


def said(caplog, words):
    """The level and the text of the one line of the log with these words."""
    (found,) = [record for record in caplog.records if words in record.getMessage()]
    return found.levelno, found.getMessage()


@pytest.mark.parametrize("way", [1, -1])
def test_the_log_warns_if_the_model_that_is_left_out_scores_better(caplog, way):
    last = last_server_round(carry_out(score=lambda number: {"accuracy": 0.5 + way * number / 100}))
    level, line = said(caplog, "the delivered model is")
    assert level == (logging.WARNING if way == 1 else logging.INFO)
    assert f"after round {last} (accuracy {0.5 + way * last / 100:.4f})" in line
    assert f"{ROUNDS - last} later round" in line
    assert f"after round {ROUNDS} the accuracy is {0.5 + way * ROUNDS / 100:.4f}" in line
    assert ("which is better" in line) == (way == 1)


def test_the_last_model_is_delivered_without_a_warning(caplog):
    carry_out(score=lambda number: {"accuracy": number / 100}, deliver="last")
    assert said(caplog, "the delivered model is")[0] == logging.INFO


def spoil(client, number, arrays, metrics):
    if client == 0:
        raise RuntimeError("out of paper")
    return arrays, {"num-examples": -1.0 if client == 1 else 1.0}


def test_who_never_took_part_is_named_with_the_reason(tmp_path, caplog):
    state, names = tmp_path / "state", ["ulm", "trier", "jena", "kiel", "mainz", "bonn"]
    made = carry_out(state, app=make_app(spoil), there=5, fleet=names, excluded=[2], norm_bound=None)
    rounds = made.journal.history()["kind"].to_list().count("client")
    line = said(caplog, "clients that never took part")[1]
    assert line.endswith(
        f"ulm (failed {rounds} of {rounds} times); trier (rejected {rounds} of {rounds} times); "
        "jena (excluded); bonn (never connected)"
    )
    summary = json.loads((state / "summary.json").read_text())
    assert summary["never_took_part"] == ["ulm", "trier", "jena", "bonn"]
    assert summary["never_connected"] == ["bonn"]
    assert summary["excluded"] == [2]


def test_if_everybody_took_part_nobody_is_named(caplog):
    carry_out()
    assert said(caplog, "clients that never took part")[1].endswith(": none")


def test_the_summary_has_every_score_that_the_history_has(tmp_path):
    state = tmp_path / "state"

    def score(number):
        return {"accuracy": 0.5, "loss": number / 10, "recall": [0.75, 0.25], "macro_f1": 0.4}

    last = last_server_round(carry_out(state, score))
    summary = json.loads((state / "summary.json").read_text())
    row = pl.read_parquet(state / "metrics.parquet")
    assert is_finished(state)
    assert summary["loss"] == row["loss"][-1] == pytest.approx(last / 10)
    assert summary["macro_f1"] == pytest.approx(0.4)
    assert summary["recall"] == {"0": 0.75, "1": 0.25}
    assert (summary["worst_class"], summary["worst_recall"]) == ("1", 0.25)
    assert summary["balanced_accuracy"] is summary["precision"] is None


def test_a_round_says_how_many_were_there_were_asked_and_answered(caplog):
    carry_out(q=1.0, rounds=1, per_round=4, excluded=[5])
    assert said(caplog, "round 1 of 1")[1] == "safari: round 1 of 1: client: 5 available, 4 asked, 4 answered"


def test_a_round_says_which_class_is_recognised_least(caplog):
    scores = {"accuracy": 0.5, "loss": 1.0, "recall": [0.75, math.nan, 0.25]}
    carry_out(q=1.0, rounds=1, score=lambda number: scores)
    assert said(caplog, "round 1 of 1")[1].endswith("accuracy 0.5000, least recall 0.2500 (class 2)")


def test_nobody_is_warned_of_an_evaluation_that_nobody_wanted(caplog):
    made = carry_out(q=1.0, rounds=1)
    assert made.evaluated == 0
    assert "fraction_evaluate" not in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
