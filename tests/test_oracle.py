"""The engine equals the oracle by other settings than the defaults, and for clients of unequal size.

What every algorithm must hold to, by its defaults, is in tests/algorithms/test_conformance.py.
"""

import numpy as np
import pytest

import oracle
import plan
import safari
from safari.engine import prepare

ROUNDS = 20
CLIENTS = {"local_rate": 0.2, "local_steps": 5, "batch_size": 16}
SERVER = safari.ServerSGD(rate=0.3, steps=7, batch_size=16)
PARTICIPATION = safari.Participation(excluded=3, per_round=4, dropout=0.2)
CASES = {
    "global rate": safari.FedAvg(global_rate=0.9, **CLIENTS),
    "clipped": safari.FedAvg(clip=0.8, **CLIENTS),
    "by size": safari.FedAvg(weights="size", **CLIENTS),
    "strong proximal term": safari.FedProx(proximal=0.3, **CLIENTS),
    "other moments": safari.FedAdam(global_rate=0.03, b1=0.8, b2=0.95, **CLIENTS),
    "trust after an epoch": safari.FLTrust(local_rate=0.2, local_epochs=2, batch_size=16, clip=0.8),
    "amplified every third round": safari.Amplify(every=3, amplification=1.5, **CLIENTS),
    "extrapolated": safari.Safari(safari.FedExP(eps=1e-6, **CLIENTS), SERVER, q=0.9),
    "short absences": safari.FedAU(longest=3, over="seen", **CLIENTS),
    "latest of the seen": safari.Safari(safari.MIFA(over="seen", **CLIENTS), SERVER, q=0.7),
    "variance of the seen": safari.FedVARP(over="seen", **CLIENTS),
    "rates above zero": safari.FedStale(beta=0.8, over="seen", **CLIENTS),
    "quick rates": safari.F3AST(b=0.3, over="seen", **CLIENTS),
    "bent for the seen": safari.FedDyn(alpha=0.1, over="seen", **CLIENTS),
    "echo": safari.Safari(safari.FedAWE(global_rate=0.5, **CLIENTS), SERVER, q=0.7),
    "clipped server": safari.Safari(safari.FedAvg(**CLIENTS), safari.ServerSGD(0.3, 7, 16, clip=0.5), q=0.6),
    "sum beside": safari.Beside(safari.FedAvg(weights="size", **CLIENTS), SERVER, merge="sum"),
    "average by size": safari.Beside(safari.FedAvg(weights="size", **CLIENTS), SERVER),
    "nested": safari.Safari(safari.Then(safari.SCAFFOLD(**CLIENTS), SERVER, mix=0.5), SERVER, q=0.7),
}


def assert_equals_the_oracle(federation, algorithm, participation=PARTICIPATION, rounds=ROUNDS):
    result = safari.train(federation, algorithm, participation=participation, rounds=rounds, seed=7)
    run = prepare(federation, algorithm, safari.Logistic(), participation, rounds, 7, 1, "float32")
    twin = oracle.twin_of(run.algorithm, plan.world_of(run))
    last, delivered, kinds = oracle.train(twin, np.zeros((10, 65)), plan.turns_of(run, twin))
    assert np.abs(last).max() > 0.1
    assert result.history["kind"].to_list() == kinds
    np.testing.assert_allclose(plan.as_matrix(result.params_last), last, atol=2e-5)
    np.testing.assert_allclose(plan.as_matrix(result.params), delivered, atol=2e-5)


@pytest.fixture(scope="module")
def unequal():
    """Clients from a few samples to hundreds: small ones take fewer steps, and less than a batch."""
    return safari.federate("digits", safari.IID(clients=8, size_skew=2.4), safari.ServerSet(9), seed=3)


@pytest.mark.parametrize("name", CASES)
def test_it_equals_the_oracle(digits, name):
    assert_equals_the_oracle(digits, CASES[name])


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("method", [safari.FedAvg, safari.SCAFFOLD, safari.Corrected])
def test_clients_of_unequal_size_equal_the_oracle(unequal, method, weights):
    counts = np.asarray(unequal.clients.count)
    assert counts.min() < 16 < counts.max()
    clients = method(batch_size=16, local_epochs=2, weights=weights)
    algorithm = safari.Safari(clients, safari.ServerSGD(steps=3), q=0.7)
    assert_equals_the_oracle(unequal, algorithm, safari.Participation(), rounds=10)
