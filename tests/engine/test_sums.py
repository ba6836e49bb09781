"""Whole batches and the rest of them: sums over samples that do not divide by the size of a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import safari
from safari.algorithms import Task, task
from safari.engine import evaluation
from safari.engine.result import Log


@pytest.fixture(scope="module")
def problem(digits):
    params = {"weight": jnp.asarray(np.random.default_rng(0).normal(size=(10, 64))), "bias": jnp.zeros(10)}
    return Task(safari.Logistic(), digits), params


def test_a_full_gradient_is_of_all_samples_in_batches_that_do_not_divide_them(problem, monkeypatch):
    found, params = problem
    whole = jax.jit(lambda: found.gradient(params, found.federation.client(3)))()
    monkeypatch.setattr(task, "GRADIENT_BATCH", 50)
    pieces = jax.jit(lambda: found.gradient(params, found.federation.client(3)))()
    np.testing.assert_allclose(pieces["weight"], whole["weight"], atol=1e-5)
    assert np.abs(whole["weight"]).max() > 0.01


def test_every_test_sample_counts_once_in_batches_that_do_not_divide_them(problem, monkeypatch):
    found, params = problem
    whole = jax.jit(lambda: evaluation.evaluate(found, params))()
    monkeypatch.setattr(evaluation, "BATCH", 100)
    pieces = jax.jit(lambda: evaluation.evaluate(found, params))()
    assert len(found.federation.dataset.y_test) % 100
    np.testing.assert_array_equal(pieces.correct, whole.correct)
    np.testing.assert_array_equal(pieces.predicted, whole.predicted)
    assert float(pieces.loss) == pytest.approx(float(whole.loss), rel=1e-5)
    assert int(whole.predicted.sum()) == len(found.federation.dataset.y_test)


def test_the_last_ten_are_the_last_ten_that_were_evaluated():
    history = pl.DataFrame({"accuracy_round": [*[0.0] * 5, None, *[1.0] * 9, None, 0.5]})
    log = Log(history=history, coverage=None, excluded=(), compile_seconds=0.0, train_seconds=0.0)
    assert log.accuracy_round_last10 == pytest.approx(0.95)
