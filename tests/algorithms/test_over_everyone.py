"""Methods that remember every client: many of them, unequal, with drop-out; who never comes."""

import jax
import numpy as np
import pytest

import safari
from safari.engine import Training, prepare

REMEMBERING = {"mifa": safari.MIFA, "fedvarp": safari.FedVARP, "fedstale": safari.FedStale}


@pytest.fixture(scope="module")
def thousand():
    """A thousand clients of very different sizes."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9000, 4)), rng.integers(0, 3, 9000)
    dataset = safari.Dataset(x[:8000], y[:8000], x[8000:], y[8000:])
    found = safari.federate(dataset, safari.IID(clients=1000, size_skew=0.5), safari.ServerSet(20))
    assert found.clients.count.min() < 4 < 20 < found.clients.count.max()
    return found


@pytest.mark.parametrize("name", REMEMBERING)
def test_of_a_thousand_clients_each_row_is_its_own_last_report(thousand, name):
    participation = safari.Participation(
        excluded=200, per_round=30, dropout=0.3, availability=safari.Bernoulli(0.5)
    )
    method = REMEMBERING[name](local_rate=0.1, batch_size=4, weights="size")
    run = prepare(thousand, method, safari.Logistic(), participation, 12, 0, 12, "float32")
    training = Training(run, devices=jax.devices()[:1])
    while not training.finished:
        training.advance()
    memory = training.carry.state.server_memory
    reported = {client for cohort in training.history["reported"] for client in cohort}
    rows = np.asarray(memory.change["weight"])
    assert rows.shape[0] == 1000
    moved = np.flatnonzero(np.abs(rows).max(axis=(1, 2)))
    assert set(moved.tolist()) == reported == set(np.flatnonzero(memory.seen).tolist())
    counts = np.asarray(run.task.federation.clients.count, np.float64)
    together = np.einsum("i,icf->cf", counts, rows.astype(np.float64))
    np.testing.assert_allclose(memory.sum["weight"], together, atol=1e-4)


def test_clients_that_never_come_shorten_the_step_by_their_share(digits):
    """Of ten clients four never come: over all, the mean is six tenths of that over the seen."""
    missing = safari.Participation(excluded=4)
    step = {
        over: safari.train(digits, safari.MIFA(over=over), participation=missing, rounds=1, seed=1).params
        for over in ("all", "seen")
    }
    np.testing.assert_allclose(step["all"]["weight"], 0.6 * step["seen"]["weight"], atol=1e-6)


def test_over_something_else_is_refused():
    with pytest.raises(safari.InputError, match="over = everyone: must be one of all, seen"):
        safari.FedAU(over="everyone")
