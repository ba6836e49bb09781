"""The engine: where a run is cut, and what it is stacked with, does not change it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.algorithms import Kind
from safari.engine import Training, draw_turn, prepare, program_for
from safari.engine.program import stack, stacked_axes, start_stacked

ROUNDS = 6


def prepared(digits, seed, q, rate, excluded_seed=0):
    algorithm = safari.Safari(
        safari.FedAvg(local_rate=rate, batch_size=20), safari.ServerSGD(rate=rate, steps=5), q=q
    )
    participation = safari.Participation(excluded=4, per_round=3, seed=excluded_seed)
    return prepare(digits, algorithm, safari.Logistic(), participation, ROUNDS, seed, 1, "float32")


def drawn(run, number):
    """Cohort, coin, the clients' batches and the server's batches of a round."""
    federation = run.task.federation
    turn = draw_turn(run, None, number)[2]
    keys = jax.vmap(lambda client: jax.random.fold_in(turn.client_batches, client))(turn.cohort.clients)
    batches = jax.vmap(lambda i, key: federation.schedule(federation.client(i), key, 6, 20).samples)
    server = federation.schedule(federation.server, turn.server_batches, 5, 50).samples
    return turn.cohort, turn.coin, batches(turn.cohort.clients, keys), server


def eight_runs():
    federations = [
        safari.federate("digits", safari.Classes(samples_per_client=120), safari.ServerSet(50), seed=i)
        for i in range(8)
    ]
    return [
        prepared(federations[i], seed=i, q=0.2 + 0.1 * i, rate=0.05 * (i + 1), excluded_seed=i)
        for i in range(8)
    ]


def test_a_run_draws_the_same_alone_and_stacked_with_seven_others():
    runs = eight_runs()
    together = stack(runs)
    draw_all = eqx.filter_jit(eqx.filter_vmap(drawn, in_axes=(stacked_axes(together), None)))
    draw_one = eqx.filter_jit(drawn)
    for number in range(ROUNDS):
        stacked = draw_all(together, jnp.int32(number))
        for place, run in enumerate(runs):
            alone = draw_one(run, jnp.int32(number))
            for a, b in zip(jax.tree.leaves(stacked), jax.tree.leaves(alone), strict=True):
                np.testing.assert_array_equal(a[place], b)


def test_a_run_learns_the_same_alone_and_stacked_with_seven_others():
    runs = eight_runs()
    together = stack(runs)
    carry = start_stacked(together)
    program, _ = program_for(together, carry, stacked=True)
    carry, record = program(together, carry, 0, ROUNDS)
    for place, run in enumerate(runs):
        alone = Training(run)
        while not alone.finished:
            alone.advance()
        mine = jax.tree.map(lambda leaf, place=place: leaf[place], carry.state.params)
        for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(alone.carry.state.params), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)
        kinds = [Kind(int(kind)).name.lower() for kind in record.kind[place, :ROUNDS]]
        assert alone.history["kind"].to_list() == kinds


def test_where_a_run_is_cut_does_not_change_its_bits(digits):
    def trained(stretches):
        training = Training(prepared(digits, seed=1, q=0.5, rate=0.1))
        for stretch in stretches:
            training.pace.took(1e-9, 1)
            training.advance(most=stretch)
        return training

    whole, cut = trained([6]), trained([1, 3, 2])
    assert whole.finished
    assert cut.finished
    assert whole.history.equals(cut.history)
    for a, b in zip(jax.tree.leaves(whole.carry), jax.tree.leaves(cut.carry), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


SOMETIMES = {
    "safari": safari.Safari(safari.FedAvg(batch_size=20), safari.ServerSGD(steps=5), q=0.6),
    "then": safari.Then(safari.FedAvg(batch_size=20), safari.ServerSGD(steps=5)),
    "warm start": safari.Stages(safari.ServerSGD(steps=5), safari.FedAvg(batch_size=20), rounds=4),
    "clients alone": safari.FedAvg(batch_size=20),
}


@pytest.mark.parametrize(("name", "every"), [(name, 4) for name in SOMETIMES] + [("safari", 3)])
def test_evaluating_less_often_changes_no_number_that_remains(digits, name, every):
    algorithm = SOMETIMES[name]
    often = safari.train(digits, algorithm, rounds=10, seed=2)
    seldom = safari.train(digits, algorithm, rounds=10, seed=2, evaluate_every=every)
    due = [r % every == 0 or r == 10 for r in range(1, 11)]
    assert [value is not None for value in seldom.history["accuracy"]] == due
    for r in np.flatnonzero(due):
        for column in ("accuracy", "accuracy_round", "kind"):
            assert seldom.history[column][int(r)] == often.history[column][int(r)]
    assert seldom.accuracy == often.accuracy
    np.testing.assert_array_equal(seldom.params["weight"], often.params["weight"])


def test_divergence_stops_the_run_and_names_the_round(digits):
    with pytest.raises(safari.Diverged, match=r"round 1 ") as caught:
        safari.train(digits, safari.FedAvg(local_rate=1e6), rounds=50)
    assert caught.value.result.diverged_at == len(caught.value.result.history) == 1


def test_divergence_of_a_network_is_found_at_its_round(digits):
    with pytest.raises(safari.Diverged) as caught:
        safari.train(digits, safari.FedAvg(local_rate=1e6), model=safari.MLP((16,)), rounds=50)
    history = caught.value.result.history
    assert caught.value.result.diverged_at == len(history) < 50


def test_the_test_set_is_normalised_as_the_training_set_is():
    """Accuracy and loss by hand, on samples whose shift decides what the model says."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)).astype(np.float32), np.arange(60) % 3
    dataset = safari.Dataset(x + 5, y, x + 5, y, scale=2.0, shift=np.array([10.0, 10.0, 10.0]))
    federation = safari.federate(dataset, safari.IID(clients=2), safari.ServerSet(10))
    result = safari.train(federation, rounds=2)
    logits = 2 * x @ np.asarray(result.params["weight"]).T + np.asarray(result.params["bias"])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert result.accuracy == pytest.approx((logits.argmax(axis=1) == y).mean())
    assert result.history["loss"][-1] == pytest.approx(-np.log(chances[np.arange(60), y]).mean(), rel=1e-4)
