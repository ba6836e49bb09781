"""SAFARI is a combinator: its ends are its parts, and it delivers what the server left."""

import jax
import numpy as np
import polars as pl
import pytest

import safari
from safari.registry import ALGORITHMS

CLIENT_METHODS = ("fedavg", "fedprox", "fedadam", "scaffold", "corrected", "data-sharing")
"""One of each kind: plain, other steps, an optimiser, memory, a message, other samples."""

PARTICIPATION = safari.Participation(excluded=4, per_round=3)
CLIENTS = safari.FedAvg(batch_size=30)
SERVER = safari.ServerSGD(batch_size=10, steps=4)
MODELS = {"logistic": safari.Logistic(), "cnn": safari.CNN((16, 16), kernel=3, hidden=16)}


def train(federation, algorithm, model, rounds=4):
    return safari.train(
        federation, algorithm, model=model, participation=PARTICIPATION, rounds=rounds, seed=3
    )


def assert_same_bits(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("model", MODELS)
def test_q_one_is_fedavg_bit_for_bit(digits, model):
    assisted = train(digits, safari.Safari(CLIENTS, SERVER, q=1.0), MODELS[model])
    alone = train(digits, CLIENTS, MODELS[model])
    assert_same_bits(assisted.params, alone.params)
    assert set(assisted.history["kind"]) == {"client"}
    assert np.abs(np.asarray(jax.tree.leaves(alone.params)[0])).max() > 0


@pytest.mark.parametrize("model", MODELS)
def test_q_zero_is_server_sgd_bit_for_bit(digits, model):
    assisted = train(digits, safari.Safari(CLIENTS, SERVER, q=0.0), MODELS[model])
    alone = train(digits, SERVER, MODELS[model])
    assert_same_bits(assisted.params, alone.params)
    assert set(assisted.history["kind"]) == {"server"}


@pytest.mark.parametrize("name", CLIENT_METHODS)
def test_q_one_is_any_client_method_bit_for_bit(digits, name):
    clients = ALGORITHMS[name](batch_size=30)
    assisted = train(digits, safari.Safari(clients, SERVER, q=1.0), MODELS["logistic"])
    assert_same_bits(assisted.params, train(digits, clients, MODELS["logistic"]).params)


@pytest.mark.parametrize("name", CLIENT_METHODS)
def test_q_zero_is_server_sgd_bit_for_bit_beside_any_client_method(digits, name):
    clients = ALGORITHMS[name](batch_size=30)
    assisted = train(digits, safari.Safari(clients, SERVER, q=0.0), MODELS["logistic"])
    assert_same_bits(assisted.params, train(digits, SERVER, MODELS["logistic"]).params)


def test_paired_runs_see_the_same_clients(digits):
    assisted = train(digits, safari.Safari(CLIENTS, SERVER, q=0.5), MODELS["logistic"], rounds=20).history
    alone = train(digits, CLIENTS, MODELS["logistic"], rounds=20).history
    both = assisted.filter(pl.col("kind") == "client").join(alone, on="round", suffix="_alone")
    assert 0 < len(both) < 20
    assert both["cohort"].to_list() == both["cohort_alone"].to_list()


def test_the_delivered_model_is_what_the_last_server_round_left(digits):
    algorithm = safari.Safari(CLIENTS, SERVER, q=0.7)
    kinds = train(digits, algorithm, MODELS["logistic"], rounds=20).history["kind"].to_list()
    end = 20 - kinds[::-1].index("client")
    last = end - kinds[:end][::-1].index("server")
    assert 0 < last < end
    result, until = (train(digits, algorithm, MODELS["logistic"], rounds=rounds) for rounds in (end, last))
    assert_same_bits(result.params, until.params_last)
    assert result.accuracy == until.accuracy_round
    history, first = result.history, kinds.index("server")
    assert history["accuracy"][:first].to_list() == history["accuracy_round"][:first].to_list()
    at_server_rounds = history.with_columns(
        pl.when(pl.col("kind") == "server").then("accuracy_round").forward_fill().alias("left")
    )[first:]
    assert at_server_rounds["accuracy"].to_list() == at_server_rounds["left"].to_list()


def test_a_server_round_costs_no_bytes(digits):
    history = train(digits, safari.Safari(CLIENTS, SERVER, q=0.5), MODELS["logistic"], rounds=20).history
    model = 4 * (10 * 64 + 10)
    for kind, clients, down, up in history.select("kind", "cohort", "bytes_down", "bytes_up").iter_rows():
        assert (down, up) == ((0, 0) if kind == "server" else (model * len(clients),) * 2)


def test_scaffold_sends_its_control_variates_along(digits):
    plain, scaffold = (
        train(digits, kind(batch_size=30), MODELS["logistic"]) for kind in (safari.FedAvg, safari.SCAFFOLD)
    )
    assert scaffold.summary()["bytes_up"] == 2 * plain.summary()["bytes_up"]


def test_match_takes_as_many_steps_as_a_client(digits):
    clients = safari.FedAvg(batch_size=25, local_epochs=3)
    matched = safari.Safari(clients, safari.ServerSGD(steps="match")).bind(digits, 0)[0]
    assert matched.server.steps == 3 * (120 // 25)
    assert safari.ServerSGD(steps="epoch", batch_size=20).bind(digits, 0)[0].steps == 50 // 20
    assert safari.ServerSGD(steps="epoch", batch_size=64).bind(digits, 0)[0].steps == 1


def test_weights_by_size_follow_the_samples():
    federation = safari.federate("digits", safari.IID(clients=5, size_skew=1.0))
    by_size, equal = (
        safari.train(federation, safari.FedAvg(weights=weights), rounds=1).params["bias"]
        for weights in ("size", "equal")
    )
    assert np.abs(np.asarray(by_size) - np.asarray(equal)).max() > 1e-4


def test_an_optimiser_of_optax_can_absorb_the_update(digits):
    plain = train(digits, safari.FedAvg(batch_size=30), MODELS["logistic"])
    through_optax = train(
        digits, safari.FedOpt(batch_size=30, optimizer="sgd", global_rate=1.0), MODELS["logistic"]
    )
    np.testing.assert_allclose(plain.params["weight"], through_optax.params["weight"], atol=1e-6)


def test_a_clipped_server_step_is_no_longer_than_allowed(digits):
    before, after = (
        train(digits, safari.ServerSGD(rate=0.5, steps=1, clip=clip), safari.Logistic(), rounds=1).params
        for clip in (1e-9, 0.01)
    )
    moved = jax.tree.map(lambda a, b: float(((a - b) ** 2).sum()), after, before)
    assert sum(jax.tree.leaves(moved)) ** 0.5 == pytest.approx(0.5 * 0.01, rel=1e-4)


def test_match_follows_the_client_of_median_size():
    """Not the largest, which takes several times as many steps."""
    federation = safari.federate("digits", safari.IID(clients=9, size_skew=1.0))
    clients = safari.FedAvg(batch_size=10)
    matched = safari.Safari(clients, safari.ServerSGD(steps="match")).bind(federation, 0)[0].server.steps
    assert matched == int(np.median(np.asarray(federation.clients.count))) // 10
    assert matched < federation.largest // 10
    alone = safari.ServerSGD(steps="match", batch_size=10).bind(federation, 0)[0].steps
    assert alone == matched
