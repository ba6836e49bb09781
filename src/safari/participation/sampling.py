"""Sampling: who of the available clients is picked for a round, and who drops out of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.participation.cohort import Cohort


def pick(
    key: Key[Array, ""], available: Bool[Array, " clients"], slots: int, wanted: Int[Array, ""] | int
) -> Cohort:
    """Pick `wanted` clients uniformly without replacement; fewer if fewer are available.

    `slots` bounds `wanted`: cohorts of different sizes can be made of one shape.

    A client's lot does not depend on who else is available, so two runs that differ in
    availability still pick alike.
    """
    clients = available.shape[0]
    lot = jax.random.uniform(key, (clients,))
    _, order = jax.lax.top_k(jnp.where(available, -lot, -2.0), slots)
    taken = available[order] & (jnp.arange(slots) < wanted)
    chosen = jnp.sort(jnp.where(taken, order, clients))
    picked = chosen < clients
    return Cohort(jnp.where(picked, chosen, 0), picked, picked)


def drop_out(key: Key[Array, ""], cohort: Cohort, dropout: Float[Array, ""] | float) -> Cohort:
    """Each picked client fails to report with probability `dropout`."""

    def stays(client: Int[Array, ""]) -> Bool[Array, ""]:
        return jax.random.uniform(jax.random.fold_in(key, client)) >= dropout

    reported = cohort.reported & jax.vmap(stays)(cohort.clients)
    return eqx.tree_at(lambda cohort: cohort.reported, cohort, reported)
