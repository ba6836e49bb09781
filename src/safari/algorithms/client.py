"""What all client algorithms share: a client round in moves.

A method overrides the moves in which it differs from FedAvg, and nothing else:

| move | where | FedAvg's |
|---|---|---|
| `memory` | before the first round | nothing |
| `recall` | client, once a round | its row of the memory |
| `broadcast` | server | nothing beside the model |
| `begin` | client, once a round | its memory, unchanged |
| `start` | client, once a round | the model |
| `direction` | client, every step | the gradient |
| `weigh` | server | equal, or by size |
| `absorb` | server | adds the weighted sum |
"""

from dataclasses import replace
from functools import reduce
from typing import Any, ClassVar, Literal, Self, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from safari.algorithms.base import Algorithm, Note, Turn, note
from safari.algorithms.task import MOST_BYTES_EACH, MOST_BYTES_TOGETHER, Minibatches, Task
from safari.data import Federation, Shard
from safari.errors import check_choice, check_count, check_positive
from safari.models import Params
from safari.participation import Cohort
from safari.randomness import named

Memory: TypeAlias = PyTree[Any]
MOST_ADDED_ONE_BY_ONE = 16


class ClientState(eqx.Module):
    """The parameters, and what the server and each client remember between rounds (nothing: None)."""

    params: Params
    server_memory: Memory
    client_memory: Memory


class Reports(eqx.Module):
    """What the slots of a cohort came back with.

    Attributes:
        cohort: which client is in which slot, and who of them reported.
        change: where each client ended, less the model that it was sent.
        own: what `begin` gave on each client.
        steps: how many local steps each took.
        samples: how many samples each holds.
        weight: what `weigh` gave; 0 where nothing counts.
    """

    cohort: Cohort
    change: Params
    own: Memory
    steps: Int[Array, " slots"]
    samples: Int[Array, " slots"]
    weight: Float[Array, " slots"]

    def sum(self, of: Params) -> Params:
        """The weighted sum over the slots; a slot of weight 0 may hold anything.

        Few slots are added one by one: XLA takes seconds for such a sum over large leaves on a CPU.
        """
        slots = len(self.weight)

        def over_slots(leaf: Array) -> Array:
            weight = self.weight.reshape(-1, *[1] * (leaf.ndim - 1))
            parts = jnp.where(weight != 0, leaf, 0.0) * weight
            return reduce(jnp.add, list(parts)) if slots <= MOST_ADDED_ONE_BY_ONE else jnp.sum(parts, axis=0)

        return jax.tree.map(over_slots, of)

    def update(self) -> Params:
        """The weighted sum of the changes: what FedAvg adds to the model."""
        return self.sum(self.change)


class Client(eqx.Module):
    """One client in one round, as it sees itself."""

    task: Task
    number: Int[Array, ""]
    key: Key[Array, ""]

    @property
    def shard(self) -> Shard:
        """Its samples."""
        return self.task.federation.client(self.number)

    def gradient(self, params: Params) -> Params:
        """The gradient of the mean loss over all its samples."""
        return self.task.gradient(params, self.shard, self.task.federation.largest)

    def stream(self, name: str) -> Key[Array, ""]:
        """A random key of this client in this round; no other name shares it."""
        return named(self.key, name)


class ClientAlgorithm(Algorithm):
    """Clients run local SGD, the server absorbs what they report. Subclass it for a method of your own.

    Args:
        local_rate: step size of a client.
        global_rate: factor on the averaged change.
        local_epochs: passes of a client over its samples in a round.
        local_steps: so many steps instead of passes.
        batch_size: samples a step; a smaller client uses all it has.
        weights: clients count `equal`, or by `size`.
        clip: a minibatch gradient longer than this is scaled down to it; not set: never.

    Examples:
        >>> import jax, safari
        >>> class Proximal(safari.ClientAlgorithm):
        ...     strength: float = 0.1
        ...     def direction(self, gradient, params, start, broadcast, own):
        ...         return jax.tree.map(lambda g, p, s: g + self.strength * (p - s), gradient, params, start)
        >>> federation = safari.federate("digits")
        >>> safari.train(federation, safari.Safari(Proximal(strength=0.2)), rounds=2).history.height
        2
    """

    local_rate: float = 0.1
    global_rate: float = 1.0
    local_epochs: int = 1
    local_steps: int | None = None
    batch_size: int = 64
    weights: Literal["equal", "size"] = "equal"
    clip: float | None = None
    table: ClassVar[str | None] = "clients"
    models_up: ClassVar[float] = 1.0
    """How many models' worth of numbers a client sends back."""

    sum_only: ClassVar[bool] = True
    """Whether the server looks at nothing of the reports but `reports.update()`, equally weighted. A method
    with a `weigh` or `absorb` of its own has to say so itself."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "round" in cls.__dict__ or "init" in cls.__dict__:
            raise TypeError(
                f"{cls.__name__} overrides `round` or `init`, which fix the order of the moves; override "
                "the moves, or subclass safari.Algorithm"
            )
        if {"weigh", "absorb"} & set(cls.__dict__) and "sum_only" not in cls.__dict__:
            cls.sum_only = False

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

    # The moves.

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        return self, federation

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        """What the server remembers before the first round, and all clients (their axis comes first)."""
        return None, None

    def broadcast(self, state: ClientState, task: Task, turn: Turn) -> Memory:
        """What the clients are sent beside the model; it counts as bytes down."""
        return None

    def recall(self, state: ClientState, client: Int[Array, ""]) -> Memory:
        """What a client remembers when a round begins: its row of `client_memory`."""
        return jax.tree.map(lambda memory: memory[client], state.client_memory)

    def begin(self, client: Client, params: Params, broadcast: Memory, own: Memory) -> Memory:
        """What a client has at hand in all its steps: by default what it remembers."""
        return own

    def start(self, own: Memory, params: Params) -> Params:
        """Where a client's local steps begin."""
        return params

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        """What a local step at `params` follows, on a client that began at `start`."""
        return gradient

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        """How much each report counts; by default the weights of those that reported add up to one."""
        weight = reports.samples if self.weights == "size" else 1.0
        weight = jnp.where(reports.cohort.reported, weight, 0.0)
        return weight / jnp.maximum(weight.sum(), 1e-9)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        """The state after the round."""
        rate = self.global_rate
        params = jax.tree.map(lambda p, change: p + rate * change, state.params, reports.update())
        return ClientState(params, state.server_memory, state.client_memory)

    # The round that they make.

    def init(self, params: Params, task: Task) -> ClientState:
        return ClientState(params, *self.memory(params, task))

    def round(self, state: ClientState, task: Task, turn: Turn) -> tuple[ClientState, Note]:
        noted = self.noted(state, task, turn)
        after = task.choose(
            noted.clients,
            lambda: self.absorb(state, self.collect(state, task, turn), task, turn),
            lambda: state,
        )
        return after, noted

    def noted(self, state: ClientState, task: Task, turn: Turn) -> Note:
        """The note of a round: the clients act if somebody reports; the cohort is asked in any case."""
        sent = jax.eval_shape(lambda: self.broadcast(state, task, turn))
        down = 1.0 + _numbers(sent) / _numbers(state.params)
        return note(clients=turn.cohort.reported.any(), down=down, up=self.models_up)

    def collect(self, state: ClientState, task: Task, turn: Turn) -> Reports:
        """The clients' side of a round, and what their reports weigh."""
        federation, cohort = task.federation, turn.cohort
        broadcast = self.broadcast(state, task, turn)

        def minibatches(client: Int[Array, ""]) -> Minibatches:
            return self.minibatches(task, client, turn.client_batches)

        def train(
            client: Int[Array, ""], prepared: Minibatches | None
        ) -> tuple[Params, Memory, Int[Array, ""]]:
            ready = minibatches(client) if prepared is None else prepared
            return self.local_update(state, task, turn, client, broadcast, ready)

        slots = len(cohort.clients)
        samples = int(self.steps(federation.largest)) * min(self.batch_size, federation.largest)
        fits = task.gathers_ahead(slots * samples, MOST_BYTES_TOGETHER)
        fits = fits and task.gathers_ahead(samples, MOST_BYTES_EACH)
        change, own, steps = task.over_clients(
            train, state.params, cohort.clients, minibatches if fits else None
        )
        held = federation.clients.count[cohort.clients]
        reports = Reports(cohort, change, own, steps, held, jnp.zeros(slots))
        return replace(reports, weight=self.weigh(state, reports, task, turn))

    def minibatches(self, task: Task, client: Int[Array, ""], batches: Key[Array, ""]) -> Minibatches:
        """What one client goes through in a round with these batches."""
        federation = task.federation
        return task.minibatches(
            federation.client(client),
            jax.random.fold_in(batches, client),
            int(self.steps(federation.largest)),
            min(self.batch_size, federation.largest),
        )

    def local_update(
        self,
        state: ClientState,
        task: Task,
        turn: Turn,
        client: Int[Array, ""],
        broadcast: Memory,
        minibatches: Minibatches,
    ) -> tuple[Params, Memory, Int[Array, ""]]:
        """How one client changes the parameters, what it had at hand, and how many steps it took."""
        federation = task.federation
        steps = jnp.asarray(self.steps(federation.client(client).count))
        key = jax.random.fold_in(turn.stream("client"), client)
        own = self.recall(state, client)
        own = self.begin(Client(task, client, key), state.params, broadcast, own)
        start = self.start(own, state.params)

        def direction(gradient: Params, params: Params) -> Params:
            return self.direction(gradient, params, start, broadcast, own)

        end = task.sgd(
            start,
            minibatches,
            rate=self.local_rate,
            used=steps if federation.ragged else None,
            clip=self.clip,
            direction=None if _hands_back(direction, start) else direction,
        )
        return jax.tree.map(jnp.subtract, end, state.params), own, steps

    def steps(self, samples: Any) -> Any:
        """How many local steps a client with so many samples takes."""
        if self.local_steps is not None:
            return self.local_steps + 0 * samples
        a_pass = samples // self.batch_size
        return self.local_epochs * (a_pass + (a_pass == 0))

    def mean_gradient(self, reports: Reports) -> Params:
        """The clients' mean gradient, as the weighted changes show it, whatever the server makes of them."""
        path = reports.steps.astype(jnp.float32) * self.local_rate
        share = replace(reports, weight=reports.weight / jnp.maximum(reports.weight.sum(), 1e-9))

        def a_step(change: Array) -> Array:
            return -change / jnp.maximum(path, 1e-30).reshape(-1, *[1] * (change.ndim - 1))

        return share.sum(jax.tree.map(a_step, reports.change))


def _hands_back(direction: Any, params: Params) -> bool:
    """Whether a direction is the gradient itself: then a model's own kernel may take all steps."""
    same: list[bool] = []

    def tried(gradient: Params) -> Params:
        towards = direction(gradient, params)
        same.append(all(a is b for a, b in zip(*map(jax.tree.leaves, (towards, gradient)), strict=True)))
        return towards

    jax.eval_shape(tried, params)
    return same[0]


def _numbers(tree: PyTree[Any]) -> int:
    """How many numbers a tree holds."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))
