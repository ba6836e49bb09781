"""Where randomness comes from: streams by name, and shuffles by counter.

Every purpose has a random stream of its own, derived from the seed by *name* and then folded
with the round and the client, never by the order in which things happen to be drawn. Hence two
algorithms under one seed see the same clients in the same rounds, a run draws the same random
numbers alone or inside a sweep, and a resumed run draws what it would have drawn.
"""

import dataclasses
from functools import lru_cache
from zlib import crc32

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Key, UInt32

from safari.devices import on_gpu

SHUFFLE_ROUNDS = 24


class Streams(eqx.Module):
    """The random streams of a run, one for each purpose; all but the first are for rounds.

    `methods` is where a method's own streams come from, by name: see `Turn.stream`.
    """

    initialisation: Key[Array, ""]
    availability: Key[Array, ""]
    sampling: Key[Array, ""]
    dropout: Key[Array, ""]
    coin: Key[Array, ""]
    client_batches: Key[Array, ""]
    server_batches: Key[Array, ""]
    estimation: Key[Array, ""]
    methods: Key[Array, ""]

    def __init__(self, seed: int):
        root = jax.random.key(seed)
        for field in dataclasses.fields(self):
            setattr(self, field.name, named(root, field.name))


def named(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """The stream of this name under `key`."""
    return jax.random.fold_in(key, crc32(name.encode()))


@lru_cache(maxsize=256)
def streams_of(seed: int) -> Streams:
    """The streams of a seed; sweeps ask for the same ones again and again."""
    return Streams(seed)


def host_stream(seed: int, name: str) -> np.random.Generator:
    """A stream for draws made once, on the host: partition, server set, excluded clients."""
    return np.random.default_rng([seed, crc32(name.encode())])


def shuffled(
    key: Key[Array, ""], count: Int[Array, ""], position: Int[Array, "*shape"]
) -> Int[Array, "*shape"]:
    """Where each `position` of `0..count-1` goes in the shuffle that `key` names.

    The swap-or-not shuffle (Hoang, Morris, Rogaway: An Enciphering Scheme Based on a Card
    Shuffle, CRYPTO 2012): round i pairs x with K_i - x (mod count) and swaps the pair if a
    hash bit of its larger member says so. It is a permutation for every `count`, needs no
    sort and no memory, and can be asked for single positions. Two samples remain unmixed
    after r rounds with probability 2^-r.
    """
    bits = jax.random.bits(key, (2, SHUFFLE_ROUNDS), jnp.uint32)
    pivots = (bits[0] % count.astype(jnp.uint32)).astype(jnp.int32)

    def swap_or_not(number: Array, position: Array) -> Array:
        partner = pivots[number] - position
        partner = jnp.where(partner < 0, partner + count, partner)
        swap = _hash_bit(jnp.maximum(position, partner).astype(jnp.uint32) ^ bits[1, number])
        return jnp.where(swap, partner, position)

    # Unrolled, XLA makes one kernel of all rounds on a GPU; on a CPU that only takes longer to compile.
    return jax.lax.fori_loop(0, SHUFFLE_ROUNDS, swap_or_not, position, unroll=on_gpu() or None)


def _hash_bit(word: UInt32[Array, "*shape"]) -> Bool[Array, "*shape"]:
    word = word * jnp.uint32(0x9E3779B1)
    word = (word ^ (word >> 15)) * jnp.uint32(0x85EBCA77)
    return (word >> 31).astype(bool)
