"""What the rounds of a private run have spent: epsilon, by the accountant of dp-accounting.

Which sampling amplifies privacy depends on who takes part:

- `per_round` is less than all who ever take part. The server draws that many, uniformly and without
  replacement, from those available in a round. Who is available counts as known to everyone. Two federations
  are neighbours if one client holds other samples (`replace`), so a sum changes by twice the clip.
- Everyone available is asked, and every client comes by a coin of its own. That is Poisson sampling; who came
  must stay secret. Neighbours differ in whether one client exists (`add or remove`). The rate counted is
  that of the client that comes most often.
- Everyone available is asked, and clients come in another way: nothing amplifies. Neighbours as before.

Clients that are excluded reveal nothing and hide nobody. Drop-out amplifies nothing. Rounds of the server and
the coin that decides on them do not depend on the clients' samples: they spend nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from safari.algorithms.private import Private
from safari.engine.run import Run

ORDERS = (*np.arange(1.1, 2, 0.1), *np.arange(2, 6, 0.25), *range(6, 33), *range(36, 65, 4), 80, 96, 128)
REPLACE, ADD_OR_REMOVE = "replace", "add or remove"


@dataclass(frozen=True)
class Guarantee:
    """What the epsilon of a run means.

    Attributes:
        delta: the probability that it fails.
        neighbours: two federations differ in one client: its samples (`replace`), or whether it exists.
        assumes: what must stay secret for it to hold.
    """

    delta: float
    neighbours: str
    assumes: str


def guarantee_of(run: Run) -> Guarantee | None:
    """What the epsilon of a run means; None for a run that is not private."""
    private = next((part for part in run.algorithm.parts() if isinstance(part, Private)), None)
    if private is None:
        return None
    delta = run.task.federation.size**-1.1 if private.delta is None else float(private.delta)
    if _sampled(run):
        return Guarantee(delta, REPLACE, "who of the available clients is picked stays secret")
    if run.roster.availability.independent:
        return Guarantee(delta, ADD_OR_REMOVE, "who takes part stays secret")
    return Guarantee(delta, ADD_OR_REMOVE, "nothing")


def with_epsilon(run: Run, history: pl.DataFrame) -> pl.DataFrame:
    """The history with the epsilon that was spent up to each round, where it is not there yet."""
    guarantee = guarantee_of(run)
    if guarantee is None or history["epsilon"].null_count() == 0:
        return history
    spent = np.cumsum([_rdp(event) for event in _events(run, history)], axis=0)
    return history.with_columns(epsilon=pl.Series([_epsilon(rdp, guarantee.delta) for rdp in spent]))


Event = tuple[str, float, float, float]
"""How the clients of a round were sampled, of how many (or with which rate), how many, the noise."""


def _events(run: Run, history: pl.DataFrame) -> list[Event | None]:
    """What every round revealed; None for nothing."""
    noise = history["noise"].to_list()
    available, rounds = history["available"].to_list(), history["round"].to_numpy() - 1
    if _sampled(run):
        most = int(run.roster.per_round)
        return [
            None if z is None else (REPLACE, float(max(there, 1)), float(min(most, max(there, 1))), z)
            for z, there in zip(noise, available, strict=True)
        ]
    rates = _highest_rates(run, rounds)
    return [None if z is None else (ADD_OR_REMOVE, p, 0.0, z) for z, p in zip(noise, rates, strict=True)]


def _sampled(run: Run) -> bool:
    """Whether the server draws clients from those available: else it asks all of them."""
    roster = run.roster
    return int(roster.per_round) < roster.clients - len(roster.excluded_clients)


def _highest_rates(run: Run, rounds: np.ndarray) -> Sequence[float]:
    """The rate of the client that comes most often, round by round; 1 where coins are not independent."""
    roster = run.roster
    pattern = roster.availability
    if not pattern.independent:
        return [1.0] * len(rounds)
    state = roster.init(run.streams)

    def highest(round: Any) -> Any:
        rates = pattern.rates(state, round, roster.clients)
        return jnp.float32(1) if rates is None else jnp.where(roster.excluded, 0.0, rates).max()

    # Rounded up: a rate may have lost its last digits, and events that are alike are counted together.
    found = np.asarray(jax.vmap(highest)(jnp.asarray(rounds)), np.float64)
    return [float(rate) for rate in np.minimum(np.ceil(found * 1e6 - 1e-3) / 1e6, 1.0)]


@lru_cache(maxsize=4096)
def _rdp(event: Event | None) -> np.ndarray:
    """The Renyi divergences of one round at all orders."""
    from dp_accounting import dp_event
    from dp_accounting.privacy_accountant import NeighboringRelation
    from dp_accounting.rdp import RdpAccountant

    if event is None:
        return np.zeros(len(ORDERS))
    how, source, picked, noise = event
    if how == REPLACE:
        accountant = RdpAccountant(ORDERS, NeighboringRelation.REPLACE_ONE)
        # The library takes the noise in units of the sensitivity, which is twice the clip.
        released = dp_event.GaussianDpEvent(noise / 2)
        accountant.compose(dp_event.SampledWithoutReplacementDpEvent(int(source), int(picked), released))
    else:
        accountant = RdpAccountant(ORDERS, NeighboringRelation.ADD_OR_REMOVE_ONE)
        accountant.compose(dp_event.PoissonSampledDpEvent(source, dp_event.GaussianDpEvent(noise)))
    return accountant.rdp


def _epsilon(rdp: np.ndarray, delta: float) -> float:
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    return 0.0 if not rdp.any() else float(compute_epsilon(np.array(ORDERS), rdp, delta)[0])
