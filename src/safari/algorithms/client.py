"""What all client algorithms share: local SGD on a cohort, then one averaged update.

A member of the family says what differs, in three hooks: `direction` (what a local step
follows), `absorb` (what the server makes of the averaged update) and `memory` (what server
and clients keep between rounds).
"""

from functools import reduce
from typing import Any, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from safari.algorithms.base import Algorithm, Kind, Turn
from safari.algorithms.task import MOST_BYTES_EACH, MOST_BYTES_TOGETHER, Lesson, Task
from safari.data import Federation
from safari.errors import check_choice, check_count, check_positive
from safari.models import Params
from safari.participation import Cohort

Memory: TypeAlias = PyTree[Any]
MOST_ADDED_ONE_BY_ONE = 16


class ClientState(eqx.Module):
    """The parameters, and what server and clients remember (nothing: None)."""

    params: Params
    server_memory: Memory
    client_memory: Memory


class Reports(eqx.Module):
    """What the slots of a cohort came back with; `share` is 0 where nothing counts."""

    cohort: Cohort
    change: Params
    steps: Int[Array, " slots"]
    share: Float[Array, " slots"]

    def average(self) -> Params:
        """The averaged change.

        Few slots are added one by one: XLA takes seconds for such a sum over large leaves on a CPU.
        """
        slots = len(self.share)

        def over_slots(change: Array) -> Array:
            share = self.share.reshape(-1, *[1] * (change.ndim - 1))
            parts = jnp.where(share > 0, change, 0.0) * share
            return reduce(jnp.add, list(parts)) if slots <= MOST_ADDED_ONE_BY_ONE else jnp.sum(parts, axis=0)

        return jax.tree.map(over_slots, self.change)


class ClientAlgorithm(Algorithm):
    """Clients run local SGD, the server absorbs the average of their changes.

    - `local_rate`, `global_rate`: step size of a client; factor on the averaged change.
    - `local_epochs`: passes over a client's samples, or `local_steps`: so many steps.
    - `batch_size`: samples a step; a smaller client uses all it has.
    - `weights`: clients count `equal`, or by `size`.
    - `clip`: a minibatch gradient longer than this is scaled down to it; not set: never.
    """

    local_rate: float = 0.1
    global_rate: float = 1.0
    local_epochs: int = eqx.field(static=True, default=1)
    local_steps: int | None = eqx.field(static=True, default=None)
    batch_size: int = eqx.field(static=True, default=64)
    weights: Literal["equal", "size"] = eqx.field(static=True, default="equal")
    clip: float | None = None

    def __check_init__(self) -> None:
        check_positive("local_rate", self.local_rate)
        check_positive("global_rate", self.global_rate)
        check_count("local_epochs", self.local_epochs)
        if self.local_steps is not None:
            check_count("local_steps", self.local_steps)
        check_count("batch_size", self.batch_size)
        check_choice("weights", self.weights, ("equal", "size"))
        if self.clip is not None:
            check_positive("clip", self.clip)

    def bind(self, federation: Federation) -> "ClientAlgorithm":
        return self

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        """What the server and all clients remember before the first round."""
        return None, None

    def direction(
        self, gradient: Params, params: Params, start: Params, server: Memory, own: Memory
    ) -> Params:
        """What a local step at `params` follows, in a round that began at `start`."""
        return gradient

    def absorb(self, state: ClientState, reports: Reports) -> ClientState:
        """The state after the round."""
        rate = self.global_rate
        params = jax.tree.map(lambda p, change: p + rate * change, state.params, reports.average())
        return ClientState(params, state.server_memory, state.client_memory)

    def steps(self, samples: Any) -> Any:
        """How many local steps a client with so many samples takes."""
        if self.local_steps is not None:
            return self.local_steps + 0 * samples
        a_pass = samples // self.batch_size
        return self.local_epochs * (a_pass + (a_pass == 0))

    def init(self, params: Params, task: Task) -> ClientState:
        return ClientState(params, *self.memory(params, task))

    def kind(self, state: ClientState, turn: Turn) -> Int[Array, ""]:
        return jnp.where(turn.cohort.reported.any(), Kind.CLIENT, Kind.IDLE)

    def lesson(self, task: Task, client: Int[Array, ""], batches: Key[Array, ""]) -> Lesson:
        """What one client goes through in a round with these batches."""
        federation = task.federation
        return task.lesson(
            federation.client(client),
            jax.random.fold_in(batches, client),
            int(self.steps(federation.largest)),
            min(self.batch_size, federation.largest),
        )

    def local_change(
        self, state: ClientState, task: Task, client: Int[Array, ""], lesson: Lesson
    ) -> tuple[Params, Int[Array, ""]]:
        """How one client changes the parameters in a round, and in how many steps."""
        federation = task.federation
        shard = federation.client(client)
        own = jax.tree.map(lambda memory: memory[client], state.client_memory)
        steps = jnp.asarray(self.steps(shard.count))

        def direction(gradient: Params, params: Params) -> Params:
            return self.direction(gradient, params, state.params, state.server_memory, own)

        follows_gradient = type(self).direction is ClientAlgorithm.direction
        end = task.descend(
            state.params,
            lesson,
            rate=self.local_rate,
            used=steps if federation.ragged else None,
            clip=self.clip,
            direction=None if follows_gradient else direction,
        )
        return jax.tree.map(jnp.subtract, end, state.params), steps

    def round(self, state: ClientState, task: Task, turn: Turn) -> ClientState:
        federation, cohort = task.federation, turn.cohort

        def lesson(client: Int[Array, ""]) -> Lesson:
            return self.lesson(task, client, turn.client_batches)

        def train(client: Int[Array, ""], prepared: Lesson | None) -> tuple[Params, Int[Array, ""]]:
            return self.local_change(state, task, client, lesson(client) if prepared is None else prepared)

        slots = len(cohort.clients)
        samples = int(self.steps(federation.largest)) * min(self.batch_size, federation.largest)
        fits = task.gathers_ahead(slots * samples, MOST_BYTES_TOGETHER)
        fits = fits and task.gathers_ahead(samples, MOST_BYTES_EACH)
        change, steps = task.over_clients(train, state.params, cohort.clients, lesson if fits else None)
        weight = federation.clients.count[cohort.clients] if self.weights == "size" else 1.0
        weight = jnp.where(cohort.reported, weight, 0.0)
        share = weight / jnp.maximum(weight.sum(), 1e-9)
        return self.absorb(state, Reports(cohort, change, steps, share))
