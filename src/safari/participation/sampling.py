"""Sampling: who of the available clients is picked for a round, and who drops out of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.participation.cohort import Cohort
from safari.randomness import shuffled

MANY = 4096
"""From so many clients on, not everyone draws a lot."""


def pick(
    key: Key[Array, ""],
    available: Bool[Array, " clients"],
    slots: int,
    wanted: Int[Array, ""] | int,
    prefer: Float[Array, " clients"] | None = None,
) -> Cohort:
    """Pick `wanted` clients uniformly without replacement; fewer if fewer are available.

    With `prefer` those with the highest values are picked, and lots decide between equals.

    `slots` bounds `wanted`: cohorts of different sizes can be made of one shape.

    A client's lot does not depend on who else is available, so two runs that differ in
    availability still pick alike.
    """
    clients = available.shape[0]
    if prefer is not None:
        order = _first_by_preference(key, available, slots, prefer)
    else:
        order = (_first_by_lot if clients < MANY else _first_by_shuffle)(key, available, slots)
    taken = (order < clients) & (jnp.arange(slots) < wanted)
    chosen = jnp.sort(jnp.where(taken, order, clients))
    picked = chosen < clients
    return Cohort(jnp.where(picked, chosen, 0), picked, picked)


def _first_by_lot(
    key: Key[Array, ""], available: Bool[Array, " clients"], slots: int
) -> Int[Array, " slots"]:
    """The available clients with the smallest lots, in order; the number of clients where there is none."""
    lot = jax.random.uniform(key, available.shape)
    _, order = jax.lax.top_k(jnp.where(available, -lot, -2.0), slots)
    return jnp.where(available[order], order, len(available))


def _first_by_preference(
    key: Key[Array, ""], available: Bool[Array, " clients"], slots: int, prefer: Float[Array, " clients"]
) -> Int[Array, " slots"]:
    """The available clients with the highest preference, equals by lot, in order."""
    lots = jax.random.uniform(key, prefer.shape)
    order = jnp.lexsort((lots, -prefer, ~available))[:slots]
    return jnp.where(available[order], order, len(available))


def _first_by_shuffle(
    key: Key[Array, ""], available: Bool[Array, " clients"], slots: int
) -> Int[Array, " slots"]:
    """The first available clients of a shuffled list, of which no more is looked at than needed."""
    clients, width = len(available), 4 * slots

    def look(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        start, chosen, found = state
        place = start + jnp.arange(width)
        client = shuffled(key, jnp.int32(clients), jnp.minimum(place, clients - 1))
        good = available[client] & (place < clients)
        rank = found + jnp.cumsum(good) - 1
        chosen = chosen.at[jnp.where(good, rank, slots)].set(client, mode="drop")
        return start + width, chosen, found + good.sum()

    def more(state: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        return (state[0] < clients) & (state[2] < slots)

    nobody = jnp.full(slots, clients, jnp.int32)
    return jax.lax.while_loop(more, look, (jnp.int32(0), nobody, jnp.int32(0)))[1]


def drop_out(key: Key[Array, ""], cohort: Cohort, dropout: Float[Array, ""] | float) -> Cohort:
    """Each picked client fails to report with probability `dropout`."""

    def stays(client: Int[Array, ""]) -> Bool[Array, ""]:
        return jax.random.uniform(jax.random.fold_in(key, client)) >= dropout

    reported = cohort.reported & jax.vmap(stays)(cohort.clients)
    return eqx.tree_at(lambda cohort: cohort.reported, cohort, reported)
