"""Streams by name, shuffles by counter."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from safari.randomness import Streams, host_stream, shuffled

whole_shuffle = jax.jit(lambda key, count, positions: shuffled(key, count, positions))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 300), seed=st.integers(0, 2**31 - 1))
def test_a_shuffle_is_a_permutation_for_every_count(count, seed):
    positions = jnp.minimum(jnp.arange(300), count - 1)
    places = np.asarray(whole_shuffle(jax.random.key(seed), jnp.int32(count), positions))[:count]
    assert sorted(places) == list(range(count))


def many_shuffles(count, draws):
    keys = jax.random.split(jax.random.key(0), draws)
    return np.asarray(jax.jit(jax.vmap(lambda key: shuffled(key, jnp.int32(count), jnp.arange(count))))(keys))


def test_every_sample_is_equally_likely_in_every_place():
    count, draws = 11, 20_000
    places = many_shuffles(count, draws)
    table = np.stack([np.bincount(places[:, i], minlength=count) for i in range(count)])
    statistic = ((table - draws / count) ** 2 / (draws / count)).sum()
    freedom = (count - 1) ** 2
    assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)


def test_neighbours_are_not_kept_together():
    count, draws = 30, 20_000
    places = many_shuffles(count, draws)
    distance = np.abs(places[:, 1:] - places[:, :-1])
    share = (distance == 1).mean(axis=0)
    expected = 2 / count
    assert np.abs(share - expected).max() < 5 * np.sqrt(expected / draws)


def test_streams_differ_by_name_and_by_seed():
    def words(seed):
        keys = [jax.random.key_data(leaf) for leaf in jax.tree.leaves(Streams(seed))]
        return {tuple(np.asarray(key).tolist()) for key in keys}

    assert len(words(0)) == 9
    assert not words(0) & words(1)
    assert host_stream(0, "partition").integers(1 << 60) != host_stream(0, "exclusion").integers(1 << 60)
