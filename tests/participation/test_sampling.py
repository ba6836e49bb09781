"""Sampling: uniform, without replacement, as many as there are."""

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

import safari
from safari.participation.sampling import drop_out, pick


def cohorts(mask, slots, draws, dropout=0.0):
    def one(key):
        return drop_out(jax.random.fold_in(key, 7), pick(key, jnp.asarray(mask), slots, slots), dropout)

    keys = jax.random.split(jax.random.key(0), draws)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys))


def test_cohorts_are_uniform_and_ascending():
    found = cohorts([True] * 7 + [False] * 3, 3, 6000)
    assert found.picked.all()
    assert (np.diff(found.clients, axis=1) > 0).all()
    share = np.bincount(found.clients.ravel(), minlength=10) / 6000
    np.testing.assert_allclose(share[:7], 3 / 7, atol=0.03)
    assert (share[7:] == 0).all()


def test_fewer_available_than_slots_all_take_part():
    found = cohorts([False, True, False, True], 3, 5)
    assert (found.picked == [True, True, False]).all()
    assert (found.clients[:, :2] == [1, 3]).all()


def test_drop_outs_are_picked_but_do_not_report():
    found = cohorts([True] * 10, 5, 4000, dropout=0.3)
    assert found.picked.all()
    assert abs(found.reported.mean() - 0.7) < 0.02


def test_a_round_without_clients_is_idle_and_changes_nothing(tmp_path, digits):
    file = tmp_path / "trace.csv"
    file.write_text("round,client\n1,0\n1,1\n3,2\n")
    for algorithm in (safari.FedAvg(), safari.FedAdam(), safari.SCAFFOLD()):
        participation = safari.Participation(per_round=5, availability=safari.Trace(str(file)))
        result = safari.train(digits, algorithm, participation=participation, rounds=3)
        history = result.history
        assert history["kind"].to_list() == ["client", "idle", "client"]
        assert history["cohort"].to_list() == [[0, 1], [], [2]]
        assert history["accuracy"][0] == history["accuracy"][1]
        assert history["loss"][0] == history["loss"][1]
        assert history["bytes_down"].to_list()[1] == 0


def test_a_round_in_which_everyone_drops_out_is_idle(digits):
    participation = safari.Participation(per_round=2, dropout=1.0)
    result = safari.train(digits, participation=participation, rounds=10, seed=1)
    rounds = result.history.filter(pl.col("kind") != "server")
    assert set(rounds["kind"]) == {"idle"}
    assert (rounds["bytes_down"] > 0).all()
    assert (rounds["bytes_up"] == 0).all()
    assert result.summary()["idle_rounds"] == len(rounds) > 0


def test_very_many_clients_are_picked_uniformly_too():
    """Beyond `MANY` a shuffled list is gone through; small fleets draw lots. Both are fair."""
    mask = np.zeros(5000, bool)
    mask[::50] = True
    found = cohorts(mask, 30, 400)
    assert found.picked.all()
    assert (np.diff(found.clients, axis=1) > 0).all()
    assert mask[found.clients].all()
    share = np.bincount(found.clients.ravel(), minlength=5000)[mask] / 400
    np.testing.assert_allclose(share, 0.3, atol=0.12)
    assert abs(share.mean() - 0.3) < 1e-9
    few = cohorts(np.arange(5000) % 500 == 3, 30, 5)
    assert (few.picked.sum(axis=1) == 10).all()


def test_a_clients_place_in_a_large_fleet_does_not_depend_on_the_others():
    everyone, half = np.ones(5000, bool), np.arange(5000) % 2 == 0
    all_picked, half_picked = cohorts(everyone, 100, 20), cohorts(half, 100, 20)
    for one, other in zip(all_picked.clients, half_picked.clients, strict=True):
        assert set(one[half[one]]) <= set(other)


def test_each_of_a_cohort_drops_out_for_itself():
    """One coin for all would let everyone report in 7 of 10 rounds."""
    found = cohorts([True] * 10, 5, 4000, dropout=0.3)
    assert abs(found.reported.all(axis=1).mean() - 0.7**5) < 0.03


def test_those_preferred_are_picked_first_and_lots_decide_between_equals():
    prefer = jnp.array([1.0, 5.0, 2.0, 2.0, 9.0, 2.0])
    available = jnp.array([True, True, True, True, False, True])

    def one(key):
        return pick(key, available, 3, 2, prefer), pick(key, available, 3, 3, prefer)

    two, three = jax.vmap(one)(jax.random.split(jax.random.key(0), 600))
    assert two.picked.sum(axis=1).tolist() == [2] * 600
    assert (np.asarray(two.clients)[:, 0] == 1).all()
    share = np.bincount(np.asarray(three.clients).ravel(), minlength=6) / 600
    np.testing.assert_allclose(share[[0, 1, 4]], [0, 1, 0])
    np.testing.assert_allclose(share[[2, 3, 5]], 2 / 3, atol=0.08)
