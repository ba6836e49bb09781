"""The family of algorithms: a state, what a round makes of it, what is delivered."""

import dataclasses
from abc import abstractmethod
from enum import IntEnum
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.algorithms.about import About
from safari.algorithms.task import Task
from safari.data import Federation
from safari.models import Params
from safari.participation import Cohort
from safari.randomness import named
from safari.registry import Noun


class Kind(IntEnum):
    """What a round was: the clients trained, the server trained, nobody could, or both did."""

    CLIENT = 0
    SERVER = 1
    IDLE = 2
    BOTH = 3


class Turn(eqx.Module):
    """The random draws of one round: the same for every algorithm under one seed.

    Attributes:
        number: the round, counted from 0.
        rounds: how many rounds the run has.
        cohort: who was picked, and who of them reports back.
        coin: uniform between 0 and 1.
        client_batches: the key of the clients' minibatches; fold the client's number into it.
        server_batches: the key of the server's minibatches.
        rates: the probability that each client reports in this round; None where nobody knows it.
        expected: about how many reports were to be expected; who came in it plays no part.
    """

    number: Int[Array, ""]
    rounds: int = eqx.field(static=True)
    cohort: Cohort
    coin: Float[Array, ""]
    client_batches: Key[Array, ""]
    server_batches: Key[Array, ""]
    methods: Key[Array, ""]
    rates: Float[Array, " clients"] | None = None
    expected: Float[Array, ""] | None = None

    def stream(self, name: str) -> Key[Array, ""]:
        """A random key of this round for a purpose of the method's own; no other name shares it."""
        return named(self.methods, name)


class Note(eqx.Module):
    """What happened in a round. What is delivered and what counts as idle follows from it alone.

    Attributes:
        clients: whether updates of clients entered the model.
        server: whether training on the server's samples entered the model; `False` (not an array)
            says that it never does, and the program then leaves out what only a server needs.
        delivers: whether the model after the round is one to hand over although the server did not act:
            where clients go on from what the server left, as after a warm start.
        q: the probability of a client round; NaN where no coin was tossed.
        down: models sent to each client of the cohort; 0 if nobody was asked.
        up: models that each reporting client sent back.
        columns: numbers for columns of their own in the history, as the algorithm's `columns` names them.
    """

    clients: Bool[Array, ""] | bool
    server: Bool[Array, ""] | bool
    delivers: Bool[Array, ""] | bool
    q: Float[Array, ""]
    down: Float[Array, ""]
    up: Float[Array, ""]
    columns: dict[str, Float[Array, ""]]

    def over(self, columns: tuple[str, ...]) -> "Note":
        """The note with all these columns; NaN in those that the round has nothing to say of."""
        nothing = jnp.float32(jnp.nan)
        return dataclasses.replace(self, columns={name: self.columns.get(name, nothing) for name in columns})

    def synced(self) -> Bool[Array, ""] | bool:
        """Whether the model after the round is one to hand over; `False` if that of no round ever is."""
        if self.delivers is False:
            return self.server
        return jnp.asarray(self.server) | jnp.asarray(self.delivers)

    def kind(self) -> Int[Array, ""]:
        """The `Kind` of the round."""
        clients, server = jnp.asarray(self.clients), jnp.asarray(self.server)
        one_side = jnp.where(server, Kind.SERVER, jnp.where(clients, Kind.CLIENT, Kind.IDLE))
        return jnp.where(clients & server, Kind.BOTH, one_side)


def note(
    *,
    clients: Bool[Array, ""] | bool = False,
    server: Bool[Array, ""] | bool = False,
    delivers: Bool[Array, ""] | bool = False,
    q: Float[Array, ""] | float = jnp.nan,
    down: float = 0.0,
    up: float = 0.0,
    columns: dict[str, Float[Array, ""]] | None = None,
) -> Note:
    """A `Note`, from plain values.

    Args:
        clients: whether updates of clients entered the model.
        server: whether training on the server's samples entered the model.
        delivers: whether the model is one to hand over although the server did not act.
        q: the probability of a client round; NaN where no coin was tossed.
        down: models sent to each client of the cohort; 0 if nobody was asked.
        up: models that each reporting client sent back.
        columns: numbers for columns of their own in the history.

    Examples:
        >>> import safari
        >>> int(safari.note(clients=True, server=True).kind())
        3
    """
    columns = {name: jnp.float32(value) for name, value in (columns or {}).items()}
    return Note(clients, server, delivers, jnp.float32(q), jnp.float32(down), jnp.float32(up), columns)


class Algorithm(Noun):
    """How parameters change from round to round.

    The state is any pytree that has the current parameters as `params`. Floats are leaves, so that
    runs which differ in them share one compiled program; whole numbers, booleans and texts are static.
    To bring your own client method subclass `ClientAlgorithm`, which says what a client round
    consists of; subclass this for anything else.

    `table` names the table of a spec that describes an algorithm which acts on one side alone
    (`clients` or `server`). `asks_clients` is whether clients ever train. `columns` are the names of
    the numbers that its notes carry. `needs_rates` is whether it must know how often clients come.
    `about` is what the method states about itself; the methods that safari lists have it.

    Examples:
        >>> import equinox as eqx, jax, safari
        >>> class State(eqx.Module):
        ...     params: dict
        >>> class Shrink(safari.Algorithm):
        ...     factor: float = 0.9
        ...     def init(self, params, task):
        ...         return State(params)
        ...     def round(self, state, task, turn):
        ...         smaller = jax.tree.map(lambda leaf: self.factor * leaf, state.params)
        ...         return State(smaller), safari.note(server=True)
        >>> safari.train(safari.federate("digits"), Shrink(), rounds=2).history["kind"].to_list()
        ['server', 'server']
    """

    about: ClassVar[About | None] = None
    table: ClassVar[str | None] = None
    asks_clients: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()
    needs_rates: ClassVar[bool] = False

    def bind(self, federation: Federation, seed: int) -> "tuple[Algorithm, Federation]":
        """The algorithm with all that depends on the federation filled in, and the federation that it
        trains on: the same one, unless the method moves samples.

        Raises:
            InputError: if the federation does not fit.
        """
        return self, federation

    def parts(self) -> "list[Algorithm]":
        """The algorithm itself and all that it is made of, the outermost first."""
        held = [getattr(self, field.name) for field in dataclasses.fields(self)]
        return [self, *(part for one in held if isinstance(one, Algorithm) for part in one.parts())]

    @abstractmethod
    def init(self, params: Params, task: Task) -> Any:
        """The state before the first round."""

    @abstractmethod
    def round(self, state: Any, task: Task, turn: Turn) -> tuple[Any, Note]:
        """The state after a round, and what happened in it."""

    def prefer(self, state: Any, number: Int[Array, ""]) -> Float[Array, " clients"] | None:
        """Whom to pick in round `number` of those that can be reached: those with the highest values.

        Lots decide between equals; None leaves everything to them.
        """
        return None

    def deliver(self, state: Any) -> Params:
        """The model to hand over if training ended now."""
        return state.params

    def with_params(self, state: Any, params: Params | None) -> Any:
        """The state with other parameters: where another algorithm has gone on from them."""
        return eqx.tree_at(lambda state: state.params, state, params, is_leaf=lambda leaf: leaf is None)
