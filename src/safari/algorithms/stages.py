"""`Stages`: one algorithm for the first rounds, another one after them."""

from dataclasses import replace
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Algorithm, Note, Turn
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.server_sgd import ServerSGD
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check_count
from safari.models import Params


class StagesState(eqx.Module):
    """The parameters, and the states of both stages without them."""

    params: Params
    first: Any
    second: Any


class Stages(Algorithm):
    """`first` trains for `rounds` rounds, `second` from then on. Stages nest.

    `WarmStart` and `FineTune` are stages of a client method and the server. If the server never acts in the
    second stage, the model of its last round is delivered.

    Args:
        first: the algorithm of the first rounds.
        second: the algorithm of all later rounds.
        rounds: how many rounds the first stage lasts.

    Examples:
        >>> import safari
        >>> warm = safari.Stages(safari.ServerSGD(), safari.FedAvg(), rounds=1)
        >>> safari.train(safari.federate("digits"), warm, rounds=3).history["kind"].to_list()
        ['server', 'client', 'client']
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        rests_on="common practice",
        passes_ceiling=True,
        server_set=True,
    )

    first: Algorithm = ServerSGD()
    second: Algorithm = FedAvg()
    rounds: int = 10

    def __check_init__(self) -> None:
        check_count("rounds", self.rounds, 0)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys((*self.first.columns, *self.second.columns)))

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        first, federation = self.first.bind(federation, seed)
        second, federation = self.second.bind(federation, seed)
        return replace(self, first=first, second=second), federation

    def init(self, params: Params, task: Task) -> StagesState:
        first, second = self.first.init(params, task), self.second.init(params, task)
        return StagesState(params, self.first.with_params(first, None), self.second.with_params(second, None))

    def prefer(self, state: StagesState, number: Int[Array, ""]) -> Float[Array, " clients"] | None:
        first, second = self.first.prefer(state.first, number), self.second.prefer(state.second, number)
        if first is None and second is None:
            return None
        first = jnp.float32(0) if first is None else first
        second = jnp.float32(0) if second is None else second
        return jnp.where(number < self.rounds, first, second)

    def round(self, state: StagesState, task: Task, turn: Turn) -> tuple[StagesState, Note]:
        def first() -> tuple[StagesState, Note]:
            begun = self.first.with_params(state.first, state.params)
            after, note = self.first.round(begun, task, turn)
            rest = self.first.with_params(after, None)
            return StagesState(after.params, rest, state.second), note.over(self.columns)

        def second() -> tuple[StagesState, Note]:
            begun = self.second.with_params(state.second, state.params)
            after, note = self.second.round(begun, task, turn)
            rest = self.second.with_params(after, None)
            # Where the server never acts again, what it left long ago is not what training leads to.
            note = replace(note, delivers=note.server is False or note.delivers)
            return StagesState(after.params, state.first, rest), note.over(self.columns)

        return task.choose(turn.number < self.rounds, first, second)
