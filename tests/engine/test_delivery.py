"""Which model is delivered, and that the history's accuracy is always that model's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from refusals import assert_refused
from safari.engine import Training, prepare
from safari.engine.delivery import FORGET
from safari.engine.evaluation import evaluate
from safari.engine.validation import Validation, validate

ROUNDS = 11
MODES = ("synced", "last", "best", "average")


@pytest.fixture(scope="module")
def federation():
    clients = safari.Classes(samples_per_client=120)
    return safari.federate("digits", clients, safari.ServerSet(50), validation=0.4)


def prepared(federation, deliver, every=1, seed=3):
    algorithm = safari.Safari(q=0.6)
    participation = safari.Participation(excluded=3, per_round=4)
    shared = (safari.Logistic(), participation, ROUNDS, seed, every, "float32")
    return prepare(federation, algorithm, *shared, deliver=deliver)


def finish(training, most=64):
    while not training.finished:
        training.advance(most)
    return training.results()


@pytest.fixture(scope="module")
def rounds(federation):
    """The model after every round, whether the server acted in it, and its validation score."""
    training, found = Training(prepared(federation, "synced")), []
    task = training.run.task
    while not training.finished:
        training.advance(most=1)
        score = validate(task, training.carry.state.params)
        kind = training.history["kind"][-1]
        found.append((training.carry.state.params, kind == "server", score))
    return found


def expected(rounds, deliver, due):
    """The delivered model after each round, the slow way."""
    average, weight, delivered, best, models = None, 0.0, None, (-1.0, -np.inf), []
    for number, (params, server, score) in enumerate(rounds):
        if server:
            weight = 1 + FORGET * weight
            old = params if average is None else average
            average = jax.tree.map(lambda a, b, w=weight: a + (b - a) / w, old, params)
        now = (float(score.balanced_accuracy), -float(score.loss))
        if deliver == "best" and due(number) and now > best:
            best, delivered = now, params
        if deliver == "synced" and server:
            delivered = params
        if deliver == "average":
            delivered = average
        models.append(params if delivered is None or deliver == "last" else delivered)
    return models


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("deliver", MODES)
def test_what_is_delivered_and_scored_is_what_the_mode_says(federation, rounds, deliver, every):
    def due(number):
        return (number + 1) % every == 0 or number + 1 == ROUNDS

    training = Training(prepared(federation, deliver, every))
    result = finish(training)[0]
    wanted = expected(rounds, deliver, due)
    for mine, theirs in zip(*map(jax.tree.leaves, (result.params, wanted[-1])), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    task, tests = training.run.task, len(federation.dataset.y_test)
    accuracies = [
        float(evaluate(task, params).correct.sum()) / tests if due(number) else None
        for number, params in enumerate(wanted)
    ]
    assert result.history["round"].to_list() == list(range(1, ROUNDS + 1))
    for found, theirs in zip(result.history["accuracy"], accuracies, strict=True):
        assert found == theirs or found == pytest.approx(theirs, abs=1.01 / tests)
    validation = result.history["validation_balanced_accuracy"]
    known = [float(score.balanced_accuracy) if due(n) else None for n, (_, _, score) in enumerate(rounds)]
    assert validation.to_list() == pytest.approx(known)


@pytest.mark.parametrize("deliver", ["best", "average"])
def test_side_by_side_the_same_is_delivered(federation, deliver):
    runs = [prepared(federation, deliver, 3, seed) for seed in (3, 4)]
    for run, log in zip(runs, finish(Training(runs)), strict=True):
        alone = finish(Training(run))[0]
        for mine, theirs in zip(*map(jax.tree.leaves, (log.params, alone.params)), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-5)
        np.testing.assert_allclose(
            log.history["validation_loss"], alone.history["validation_loss"], rtol=1e-4
        )


@pytest.mark.parametrize("deliver", ["best", "average"])
def test_where_a_run_is_cut_does_not_change_what_is_delivered(federation, deliver):
    whole = finish(Training(prepared(federation, deliver)))[0]
    begun = Training(prepared(federation, deliver))
    begun.advance(most=1)
    begun.advance(most=3)
    rest = Training(prepared(federation, deliver))
    rest.restore(begun.carries(), begun.histories(), begun.done)
    found = finish(rest, most=2)[0]
    assert found.history.equals(whole.history)
    for mine, theirs in zip(*map(jax.tree.leaves, (found.params, whole.params)), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_balanced_accuracy_is_the_mean_recall_of_the_classes_that_are_there(monkeypatch):
    """Whatever the size of the batches, the last of which is not full."""
    monkeypatch.setattr("safari.algorithms.task.GRADIENT_BATCH", 7)
    clients = safari.Classes(samples_per_client=120)
    server = safari.ServerSet(50, missing_classes=(3, 7))
    federation = safari.federate("digits", clients, server, validation=0.4)
    run = prepared(federation, "best")
    task, held = run.task, federation.validation
    rows = np.asarray(federation.samples)[int(held.start) : int(held.start) + int(held.count)]
    x, y = federation.dataset.x[rows], np.asarray(federation.dataset.y)[rows]
    params = finish(Training(run))[0].params
    logits = np.asarray(task.logits(params, federation.dataset.normalise(x.reshape(-1, 8, 8))))
    recall = [np.mean(logits[y == label].argmax(axis=1) == label) for label in np.unique(y)]
    assert len(y) % 7
    assert recall[list(np.unique(y)).index(y[0])] > 0, "else padding by the first sample would not show"
    found = validate(task, params)
    assert float(found.balanced_accuracy) == pytest.approx(np.mean(recall))
    loss = jax.nn.logsumexp(jnp.asarray(logits), axis=1) - logits[np.arange(len(y)), y]
    assert float(found.loss) == pytest.approx(float(loss.mean()), rel=1e-5)


def test_ties_in_balanced_accuracy_go_to_the_lower_loss():
    def score(accuracy, loss):
        return Validation(jnp.float32(accuracy), jnp.float32(loss))

    best = score(0.5, 1.0)
    better = [score(0.5, 0.9), score(0.6, 2.0)]
    not_better = [score(0.5, 1.0), score(0.5, 1.1), score(0.4, 0.1), score(np.nan, np.nan)]
    assert all(one.better_than(best) for one in better)
    assert not any(one.better_than(best) for one in not_better)


def test_the_best_needs_held_out_samples(digits):
    assert_refused(
        lambda: safari.train(digits, deliver="best"), "train.deliver = best", "set data.validation"
    )
    assert_refused(lambda: safari.train(digits, deliver="first"), "train.deliver = first", "must be one of")
