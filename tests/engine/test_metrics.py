"""Metrics: the same numbers as scikit-learn's, in every round and of the delivered model."""

import io
import json

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn import metrics as sklearn_metrics

import safari
from safari.engine.metrics import softmax
from safari.errors import InputError
from safari.report.tables import class_table


def probabilities(samples: int, classes: int, seed: int, tied: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=samples)
    logits = rng.normal(size=(samples, classes)) + 1.5 * np.eye(classes)[y]
    return y, softmax(np.round(logits) if tied else logits)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("tied", [False, True])
def test_metrics_are_those_of_scikit_learn(classes, tied):
    y, p = probabilities(400, classes, seed=classes, tied=tied)
    found, named = safari.Metrics.of(y, p), p.argmax(axis=1)
    assert found.accuracy == sklearn_metrics.accuracy_score(y, named)
    assert found.balanced_accuracy == pytest.approx(sklearn_metrics.balanced_accuracy_score(y, named))
    assert found.macro_f1 == pytest.approx(sklearn_metrics.f1_score(y, named, average="macro"))
    area = sklearn_metrics.roc_auc_score(y, p[:, 1] if classes == 2 else p, multi_class="ovr")
    assert found.auc == pytest.approx(area)
    assert found.loss == pytest.approx(sklearn_metrics.log_loss(y, p))
    assert np.array_equal(found.confusion, sklearn_metrics.confusion_matrix(y, named))
    theirs = sklearn_metrics.precision_recall_fscore_support(y, named)
    for mine, other in zip((found.precision, found.recall, found.f1, found.support), theirs, strict=True):
        assert mine == pytest.approx(tuple(other))


def test_a_class_without_test_samples_has_no_recall_and_enters_no_mean():
    y, p = probabilities(200, 2, seed=1)
    padded = np.insert(p, 1, 0.0, axis=1)
    found = safari.Metrics.of(np.where(y == 1, 2, y), padded, ("flu", "sepsis", "well"))
    plain = safari.Metrics.of(y, p)
    assert found.recall == (plain.recall[0], None, plain.recall[1])
    assert found.precision[1] is None
    assert (found.balanced_accuracy, found.macro_f1) == (plain.balanced_accuracy, plain.macro_f1)
    assert found.auc == pytest.approx(plain.auc)
    assert found.worst_class in ("flu", "well")


def test_one_class_only_has_no_area_and_a_probability_of_zero_a_finite_loss():
    found = safari.Metrics.of(np.array([1, 1]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert found.auc is None
    assert 0 < found.loss < 1000
    assert found.table()["recall"].to_list() == [None, 0.5]


def test_bad_arrays_are_refused_in_one_line():
    y, p = probabilities(10, 3, seed=0)
    for case in [(y[:-1], p), (y + 3, p), (y, p[:, 0]), (y, p * np.nan), (y.astype(float), p)]:
        with pytest.raises(InputError):
            safari.Metrics.of(*case)
    with pytest.raises(InputError, match="must name 3 classes"):
        safari.Metrics.of(y, p, ("a", "b"))


def test_the_last_row_of_the_history_is_the_delivered_model(tmp_path):
    federation = safari.federate("digits")
    missing = safari.Participation(excluded=[0, 1], per_round=4)
    result = safari.train(federation, safari.Safari(), participation=missing, rounds=6)
    found, row = result.metrics, result.history.row(-1, named=True)
    dataset = federation.dataset
    x = np.asarray(dataset.normalise(dataset.shaped(dataset.x_test)))
    logits = np.asarray(safari.Logistic().apply(result.params, x))
    y, named = np.asarray(dataset.y_test), logits.argmax(axis=1)
    assert np.array_equal(found.confusion, sklearn_metrics.confusion_matrix(y, named))
    for name in ("accuracy", "balanced_accuracy", "macro_f1"):
        assert row[name] == pytest.approx(getattr(found, name), abs=1e-12)
    assert row["loss"] == pytest.approx(found.loss, rel=1e-5)
    assert tuple(row["recall"]) == found.recall
    assert tuple(row["precision"]) == found.precision
    summary = json.loads(json.dumps(result.summary()))
    assert summary["accuracy"] == found.accuracy
    assert summary["recall"] == dict(zip(found.classes, found.recall, strict=True))
    assert summary["recall"][summary["worst_class"]] == summary["worst_recall"] == min(found.recall)
    assert np.trace(summary["confusion"]) == round(found.accuracy * len(y))


def test_the_representation_and_the_table_name_the_classes():
    y, p = probabilities(50, 3, seed=4)
    found = safari.Metrics.of(y, p, ("flu", "pneumonia", "sepsis"))
    assert "pneumonia" in repr(found)
    assert found.table().schema["recall"] == pl.Float64
    assert found.table()["class"].to_list() == ["flu", "pneumonia", "sepsis"]
    assert json.dumps(found.to_dict())


def test_a_trace_with_one_client_without_the_rare_class(tmp_path):
    """Exposure 0, a ceiling below 100 %, and a recall of 0 beside it: nobody is excluded by name."""
    rng = np.random.default_rng(0)
    client, y = np.repeat([0, 1, 2], 60), np.arange(180) % 3
    y[:60] = np.arange(60) % 2
    centres = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2]])
    x = centres[y] + 0.3 * rng.normal(size=(180, 3))
    x_test, y_test = centres[np.arange(60) % 3] + 0.3 * rng.normal(size=(60, 3)), np.arange(60) % 3
    labels = ("flu", "pneumonia", "sepsis")
    dataset = safari.Dataset(x, y, x_test, y_test, client=client, labels=labels)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    (tmp_path / "trace.csv").write_text("round,client\n1,0\n2,0\n30,1\n")
    only = safari.Participation(availability=safari.Trace(tmp_path / "trace.csv"))
    clients = safari.FedAvg(local_rate=0.1, batch_size=10)
    result = safari.train(federation, clients, participation=only, rounds=20)
    summary = result.summary()
    assert (summary["excluded"], summary["absent"]) == ([], [1, 2])
    assert summary["exposure"]["sepsis"] == 0
    assert summary["accuracy_ceiling"] == pytest.approx(2 / 3)
    assert summary["recall"]["sepsis"] == 0
    assert (summary["worst_class"], summary["worst_recall"]) == ("sepsis", 0)
    assert "2 of 3 clients never take part; they hold all samples of sepsis" in summary["coverage"]
    console = Console(width=120, file=io.StringIO())
    console.print(class_table(summary))
    row = next(line for line in console.file.getvalue().splitlines() if "sepsis" in line)
    assert row.count("0.00 %") == 2
