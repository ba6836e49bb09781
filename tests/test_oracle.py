"""The engine equals the oracle: twenty rounds, the same batches, cohorts and coins."""

import numpy as np
import pytest

import oracle
import plan
import safari
from safari.engine import prepare

ROUNDS, STEPS, SIZE, SERVER_STEPS = 20, 5, 16, 7
SHAPE = (10, 65)
CASES = {
    "fedavg": (
        safari.FedAvg(local_rate=0.2, global_rate=0.9, local_steps=STEPS, batch_size=SIZE),
        lambda: oracle.FedAvg(0.2, 0.9),
    ),
    "clipped": (
        safari.FedAvg(local_rate=0.2, clip=0.8, local_steps=STEPS, batch_size=SIZE),
        lambda: oracle.Clipped(0.2, 0.8),
    ),
    "fedprox": (
        safari.FedProx(local_rate=0.2, proximal=0.3, local_steps=STEPS, batch_size=SIZE),
        lambda: oracle.FedProx(0.2, 0.3),
    ),
    "scaffold": (
        safari.SCAFFOLD(local_rate=0.2, local_steps=STEPS, batch_size=SIZE),
        lambda: oracle.SCAFFOLD(0.2, 10, np.zeros(SHAPE)),
    ),
    "fedadam": (
        safari.FedAdam(local_rate=0.2, global_rate=0.03, b1=0.8, b2=0.95, local_steps=STEPS, batch_size=SIZE),
        lambda: oracle.FedAdam(0.2, 0.03, 0.8, 0.95, 1e-3),
    ),
}
SERVER = safari.ServerSGD(rate=0.3, steps=SERVER_STEPS, batch_size=SIZE)
PARTICIPATION = safari.Participation(excluded=3, per_round=4, dropout=0.2)


def train_both(federation, algorithm, clients, q):
    result = safari.train(federation, algorithm, participation=PARTICIPATION, rounds=ROUNDS, seed=7)
    run = prepare(federation, algorithm, safari.Logistic(), PARTICIPATION, ROUNDS, 7, 1, "float32")
    rounds = plan.rounds_of(run, STEPS, SIZE, SERVER_STEPS)
    last, synced = oracle.safari(np.zeros(SHAPE), rounds, clients, q, 0.3)
    return result, last, synced


@pytest.mark.parametrize("name", CASES)
def test_client_algorithm_equals_the_oracle(digits, name):
    algorithm, clients = CASES[name]
    result, last, _ = train_both(digits, algorithm, clients(), q=1.0)
    assert np.abs(last).max() > 0.1
    np.testing.assert_allclose(plan.as_matrix(result.params), last, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_assisted_algorithm_equals_the_oracle(digits, name):
    algorithm, clients = CASES[name]
    assisted = safari.Safari(algorithm, SERVER, q=0.6)
    result, last, synced = train_both(digits, assisted, clients(), q=0.6)
    assert {"client", "server"} <= set(result.history["kind"])
    np.testing.assert_allclose(plan.as_matrix(result.params_last), last, atol=1e-5)
    np.testing.assert_allclose(plan.as_matrix(result.params), synced, atol=1e-5)


def test_clients_of_unequal_size_equal_the_oracle():
    """Ragged clients: fewer steps for small ones, all samples where a batch does not fill."""
    federation = safari.federate("digits", safari.IID(clients=8, size_skew=2.4), safari.ServerSet(9), seed=3)
    counts = np.asarray(federation.clients.count)
    size = 16
    assert counts.min() < size < counts.max()
    algorithm = safari.Safari(
        safari.FedAvg(batch_size=size, local_epochs=2, weights="equal"), safari.ServerSGD(steps=3), q=0.7
    )
    result = safari.train(federation, algorithm, rounds=10)
    run = prepare(federation, algorithm, safari.Logistic(), safari.Participation(), 10, 0, 1, "float32")

    def cut(rounds):
        for coin, cohort, server in rounds:
            passes = {i: max(counts[i] // size, 1) for i in cohort}
            yield coin, {i: batches[: 2 * passes[i]] for i, batches in cohort.items()}, server

    rounds = cut(plan.rounds_of(run, int(2 * (counts.max() // size)), size, 3))
    last, _ = oracle.safari(np.zeros(SHAPE), rounds, oracle.FedAvg(0.1), 0.7, 0.1)
    np.testing.assert_allclose(plan.as_matrix(result.params_last), last, atol=1e-5)
