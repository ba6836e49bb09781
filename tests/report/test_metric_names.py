"""Metrics by name: every command reads the same numbers under the same names."""

import json

import numpy as np
import polars as pl
import pytest

import safari
from safari.advise.goal import Goal
from safari.errors import InputError
from safari.experiment.sweep.store import by_number
from safari.report.metric_names import DEFAULT, KNOWN, check_known, metric_named, metrics_named, with_own
from safari.report.sweeps import differences, grouped
from safari.report.tables import difference_table, sweep_table

OWN = "def missed(y, probabilities):\n    return (probabilities.argmax(axis=1) != y).sum()\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with a metric of its own, the name of that, and its summary as a file gives it back."""
    path = tmp_path_factory.mktemp("own") / "costs.py"
    path.write_text(OWN)
    name = f"{path}:missed"
    missing = safari.Participation(excluded=4)
    federation = safari.federate("digits", client_test=0.2)
    result = safari.train(federation, safari.FedAvg(), participation=missing, rounds=3, metrics=(name,))
    return result, name, json.loads(json.dumps(result.summary()))


def test_a_summary_and_a_row_give_the_same_numbers_under_every_name(finished):
    result, own, summary = finished
    row = by_number(summary)
    for name in (*KNOWN, "recall:3", own):
        metric = metric_named(name)
        assert metric.of(summary) == metric.of(row) is not None
    assert metric_named("recall:3").of(row) == result.metrics.recall[3]
    assert metric_named(own).of(row) == round((1 - result.accuracy) * sum(result.metrics.support))
    assert metric_named("auc").of({}) is None


def test_the_usual_three_unless_others_are_named():
    assert tuple(one.name for one in metrics_named([])) == DEFAULT
    assert [one.name for one in metrics_named(["loss, auc", "auc"])] == ["loss", "auc"]


@pytest.mark.parametrize("name", ["acuracy", "nothing.py:f", "json:nothing", "json:__name__", ":", "sepsis:"])
def test_unknown_metrics_are_refused_in_one_line(name):
    with pytest.raises(InputError) as caught:
        metric_named(name)
    assert "--metric" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_misspelt_metric_of_ones_own_is_told_what_its_file_has(finished):
    _, own, _ = finished
    with pytest.raises(InputError, match=r"unknown name in .*costs\.py; did you mean missed\?"):
        metric_named(own.replace(":missed", ":mised"))


def test_a_class_or_client_that_there_is_not_is_refused():
    def digits():
        return safari.federate("digits", client_test=0.2)

    check_known(metrics_named(["recall:3", "client:9", "worst_client_accuracy"]), digits)
    with pytest.raises(InputError, match="unknown class; known are 0, 1"):
        check_known(metrics_named(["recall:sepsis"]), digits)
    with pytest.raises(InputError, match="unknown client; known are 0, 1"):
        check_known(metrics_named(["client:north"]), digits)


@pytest.mark.parametrize("name", ["worst_client_accuracy", "client:3"])
def test_a_metric_by_client_needs_samples_of_clients(name):
    with pytest.raises(InputError, match=r"set data\.client_test"):
        check_known(metrics_named([name]), lambda: safari.federate("digits"))
    with pytest.raises(InputError, match="advice goes by the server's own samples"):
        Goal.named(name)


@pytest.mark.parametrize("body", ["1 / 0", "'much'", "y"])
def test_a_function_that_gives_no_number_is_refused_before_the_training(body, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(f"def wrong(y, probabilities):\n    return {body}\n")
    with pytest.raises(InputError, match=r"train\.metrics"):
        safari.train(safari.federate("digits"), rounds=1, metrics=(f"{path}:wrong",))


def test_own_metrics_go_into_the_spec(finished):
    given = with_own({"train": {"rounds": 3}}, metrics_named(["auc", finished[1]]))
    assert given == {"train": {"rounds": 3, "metrics": [finished[1]]}}
    assert with_own({}, metrics_named([])) == {}


def test_tables_have_a_column_a_metric_and_differences_a_row_a_metric():
    rows = [
        {
            "settings": json.dumps({"algorithm.name": name, "train.seed": seed}),
            "seed": seed, "accuracy": 0.9, "accuracy_round": 0.8, "accuracy_ceiling": 1.0,
            "balanced_accuracy": 0.5 + lift + 0.01 * seed, "loss": 2.0 - lift, "diverged_at": None,
        }
        for name, lift in (("fedavg", 0.0), ("safari", 0.25))
        for seed in range(3)
    ]  # fmt: skip
    results, metrics = pl.DataFrame(rows), metrics_named(["accuracy,balanced_accuracy,loss"])
    groups = grouped(results, metrics)
    assert groups["balanced_accuracy"].to_list() == pytest.approx([51.0, 76.0])
    assert groups["loss"].to_list() == pytest.approx([2.0, 1.75])
    apart = differences(results, metrics)
    assert apart["metric"].to_list() == ["accuracy", "balanced accuracy", "loss"]
    assert np.allclose(apart["mean"], [0.0, 25.0, -0.25])
    assert len(sweep_table(groups, metrics).columns) == 7
    assert difference_table(apart, ties=False).row_count == 3
