"""`Participation`: who never takes part, who can, who is picked, who drops out."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from safari.devices import placed
from safari.errors import (
    InputError,
    check,
    check_count,
    check_fraction,
    check_not_negative,
    check_seed,
    naming,
    unknown_name,
)
from safari.participation.availability import Always, Availability
from safari.participation.availability.base import State
from safari.participation.cohort import Cohort
from safari.participation.sampling import drop_out, pick
from safari.randomness import Streams, host_stream
from safari.registry import Noun


def _frozen(value: int | Sequence[int | str]) -> int | tuple[int | str, ...]:
    return value if isinstance(value, int) else tuple(value)


class Participation(Noun):
    """How clients come to take part in rounds.

    Args:
        excluded: clients that never take part: a number of them (s), drawn at random, or a list of
            client numbers or names.
        per_round: how many are picked each round (m), uniformly without replacement from those
            available; not set: everyone available.
        availability: who can be reached in a round.
        dropout: the probability that a picked client does not report back.
        seed: draws the excluded clients; not set: the seed of training.

    Examples:
        >>> import safari
        >>> safari.Participation(excluded=[0, 3], per_round=5, availability=safari.Bernoulli(0.7)).per_round
        5
    """

    excluded: int | tuple[int | str, ...] = eqx.field(default=0, converter=_frozen)
    per_round: int | None = None
    availability: Availability = Always()
    dropout: float = 0.0
    seed: int | None = None

    def __check_init__(self) -> None:
        if isinstance(self.excluded, int):
            check_not_negative("excluded", self.excluded)
        if self.per_round is not None:
            check_count("per_round", self.per_round)
        if self.seed is not None:
            check_seed("seed", self.seed)
        check_fraction("dropout", self.dropout)

    def resolve(self, clients: int, seed: int, names: Sequence[str] | None = None) -> "Roster":
        """Fix who is excluded among `clients` clients, called `names`; check that everything fits."""
        excluded = self._excluded_clients(clients, seed, names)
        with naming("availability"):
            availability = self.availability.called(names)
            availability.check(clients)
        left = clients - len(excluded)
        check(left > 0, "excluded", self.excluded, f"leaves none of the {clients} clients")
        slots = left if self.per_round is None else self.per_round
        check(slots <= left, "per_round", self.per_round, f"only {left} of {clients} clients ever take part")
        mask = np.zeros(clients, bool)
        mask[excluded] = True
        return Roster(availability, placed(mask), self.dropout, placed(slots, np.int32), slots)

    def _excluded_clients(self, clients: int, seed: int, names: Sequence[str] | None) -> np.ndarray:
        if isinstance(self.excluded, int):
            check(self.excluded < clients, "excluded", self.excluded, f"leaves none of the {clients} clients")
            rng = host_stream(seed if self.seed is None else self.seed, "exclusion")
            return np.sort(rng.permutation(clients)[: self.excluded])
        numbers = [_number(client, clients, names) for client in self.excluded]
        return np.unique(np.array(numbers, int))


def _number(client: int | str, clients: int, names: Sequence[str] | None) -> int:
    """The number of a client. Where clients have names, a number is a name too, if one is called so."""
    if names is not None and str(client) in names:
        return list(names).index(str(client))
    if isinstance(client, str):
        check(names is not None, "excluded", client, f"clients have no names; they are 0 to {clients - 1}")
        raise InputError("excluded", client, unknown_name(client, names or (), "client"))
    check(0 <= client < clients, "excluded", client, f"clients are 0 to {clients - 1}")
    return client


class Roster(eqx.Module):
    """A `Participation` over a known number of clients, with its excluded set drawn.

    `per_round` clients are picked into `slots` places, which may be more.
    """

    availability: Availability
    excluded: Bool[Array, " clients"]
    dropout: Array | float
    per_round: Int[Array, ""]
    slots: int = eqx.field(static=True)

    @property
    def clients(self) -> int:
        return self.excluded.shape[-1]

    @property
    def excluded_clients(self) -> tuple[int, ...]:
        """The clients that never take part. Host code."""
        return tuple(int(client) for client in np.flatnonzero(np.asarray(self.excluded)))

    def absent(self, streams: Streams, rounds: int) -> tuple[int, ...]:
        """The clients that have no chance to report in any of the rounds. Host code."""
        some = self.availability.can_come(streams.availability, self.clients, rounds)
        comes = np.asarray(some, bool) & ~np.asarray(self.excluded) & bool(np.asarray(self.dropout) < 1)
        return tuple(int(client) for client in np.flatnonzero(~comes))

    def init(self, streams: Streams) -> State:
        return self.availability.init(streams.availability, self.clients)

    def draw(
        self,
        state: State,
        streams: Streams,
        round: Int[Array, ""],
        prefer: Float[Array, " clients"] | None = None,
    ) -> tuple[State, Bool[Array, " clients"], Cohort]:
        """The state after the round, who could take part in it, and who was picked.

        Args:
            state: the state of the availability before the round.
            streams: the random streams of the run.
            round: its number, from 0.
            prefer: who is picked first; not set: all are equal.
        """
        key = jax.random.fold_in(streams.availability, round)
        state, reachable = self.availability.step(state, key, round, self.clients)
        available = reachable & ~self.excluded
        slots, wanted = self.slots, self.per_round
        cohort = pick(jax.random.fold_in(streams.sampling, round), available, slots, wanted, prefer)
        return state, available, drop_out(jax.random.fold_in(streams.dropout, round), cohort, self.dropout)

    def rates(
        self, state: State, round: Int[Array, ""], available: Bool[Array, " clients"]
    ) -> Float[Array, " clients"] | None:
        """The probability that each client reports in a round in which so many are available.

        It can be reached, is picked of those that can be, and does not drop out. None where the
        availability does not know its rates.
        """
        reachable = self.availability.rates(state, round, self.clients)
        if reachable is None:
            return None
        picked = jnp.minimum(1.0, self.per_round / jnp.maximum(available.sum(), 1))
        return jnp.where(self.excluded, 0.0, reachable * picked * (1.0 - self.dropout))

    def expected(self, state: State, round: Int[Array, ""]) -> Float[Array, ""]:
        """About how many clients will report in a round; who comes in it plays no part."""
        reachable = self.availability.rates(state, round, self.clients)
        there = self.clients if reachable is None else jnp.where(self.excluded, 0.0, reachable).sum()
        return jnp.minimum(self.per_round, there) * (1.0 - self.dropout)
