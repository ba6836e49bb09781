"""The engine: one training run as a pytree, and a compiled stretch of its rounds.

A `Run` holds everything that a run is made of, a `Carry` everything that changes. A
`Program` takes a carry over the next rounds; how many is an argument of the compiled program, so the
numbers do not depend on where a run was cut. Runs of equal shape can be stacked and advance
together.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from safari.algorithms import Algorithm, Kind, Precision, Task, Turn
from safari.branching import choose, stacked_runs
from safari.data import Federation
from safari.devices import once, shared_out
from safari.errors import check_count, check_seed, naming
from safari.evaluation import Score, evaluate, no_score
from safari.models import Model, Params
from safari.participation import Cohort, Participation, Roster
from safari.randomness import Streams, streams_of

MOST_ROUNDS = 64
"""The most rounds that one call of the compiled program can take."""


class Run(eqx.Module):
    """One training run, ready to be compiled: floats have become leaves."""

    task: Task
    algorithm: Algorithm
    roster: Roster
    streams: Streams
    rounds: int = eqx.field(static=True)
    evaluate_every: int = eqx.field(static=True)


class Carry(eqx.Module):
    """All that changes from round to round."""

    state: PyTree[Any]
    availability: PyTree[Any]
    synced: Score


class Record(eqx.Module):
    """What the engine notes of a round."""

    kind: Int[Array, ""]
    q: Float[Array, ""]
    available: Int[Array, ""]
    cohort: Cohort
    evaluated: Bool[Array, ""]
    score: Score
    synced: Score
    finite: Bool[Array, ""]


def prepare(
    federation: Federation,
    algorithm: Algorithm,
    model: Model,
    participation: Participation,
    rounds: int,
    seed: int,
    evaluate_every: int,
    precision: Precision,
) -> Run:
    """Check that the parts fit together and bind them into a `Run`."""
    check_train(rounds, seed, evaluate_every)
    with naming("participation"):
        roster = participation.resolve(federation.size, seed)
    task = Task(model, federation, precision)
    run = Run(task, algorithm.bind(federation), roster, streams_of(seed), rounds, evaluate_every)
    return jax.tree.map(lambda leaf: jnp.float32(leaf) if isinstance(leaf, float | int) else leaf, run)


def check_train(rounds: int, seed: int, evaluate_every: int) -> None:
    """Refuse numbers that no run can have."""
    check_count("train.rounds", rounds)
    check_count("train.evaluate_every", evaluate_every)
    check_seed("train.seed", seed)


def initial_params(run: Run) -> Params:
    """The parameters before the first round."""
    dataset = run.task.federation.dataset
    with naming("model"):
        return run.task.model.init(run.streams.initialisation, dataset.shape, dataset.classes)


def start(run: Run) -> Carry:
    """The carry before the first round."""
    state = run.algorithm.init(initial_params(run), run.task)
    return Carry(state, run.roster.init(run.streams), no_score(run.task))


def deal(run: Run, availability: PyTree[Any], number: Int[Array, ""]) -> tuple[PyTree[Any], Array, Turn]:
    """What chance deals in a round: who is there, who is picked, the coin, the batches."""
    streams = run.streams
    availability, available, cohort = run.roster.draw(availability, streams, number)
    turn = Turn(
        number,
        cohort,
        coin=jax.random.uniform(jax.random.fold_in(streams.coin, number)),
        client_batches=jax.random.fold_in(streams.client_batches, number),
        server_batches=jax.random.fold_in(streams.server_batches, number),
    )
    return availability, available, turn


def one_round(run: Run, carry: Carry, number: Int[Array, ""]) -> tuple[Carry, Record]:
    """Round `number`, counted from 0."""
    availability, available, turn = deal(run, carry.availability, number)
    kind = run.algorithm.kind(carry.state, turn)
    state = choose(
        kind == Kind.IDLE, lambda: carry.state, lambda: run.algorithm.round(carry.state, run.task, turn)
    )
    due = ((number + 1) % run.evaluate_every == 0) | (number + 1 == run.rounds)
    score = jax.lax.cond(due, lambda: _score(run, state.params), lambda: no_score(run.task))
    synced = _synced_score(run, state, kind, due, score, carry.synced)
    finite = jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)]).all()
    record = Record(
        kind, run.algorithm.probability(carry.state), available.sum(), turn.cohort, due, score, synced, finite
    )
    return Carry(state, availability, synced), record


def _score(run: Run, params: Params) -> Score:
    return once(lambda: evaluate(run.task, params))


def _synced_score(run: Run, state: Any, kind: Array, due: Array, score: Score, before: Score) -> Score:
    """The score of the model that the last server round left.

    Evaluated every round, it is the score of the last server round: nothing to compute.
    """
    if run.evaluate_every == 1:
        return jax.tree.map(lambda now, old: jnp.where(kind == Kind.SERVER, now, old), score, before)
    if type(run.algorithm).synced is Algorithm.synced:
        return before
    params, exists = run.algorithm.synced(state)

    def score_now() -> Score:
        return choose(exists, lambda: _score(run, params), lambda: before)

    return jax.lax.cond(due, score_now, lambda: before)


def several_rounds(run: Run, carry: Carry, first: Array, count: Array) -> tuple[Carry, Record]:
    """Rounds `first` to `first + count - 1`; records beyond `count` are blank."""
    blank = jax.tree.map(lambda leaf: jnp.zeros((MOST_ROUNDS, *leaf.shape), leaf.dtype), blank_record(run))

    def body(offset: Array, now: tuple[Carry, Record]) -> tuple[Carry, Record]:
        carry, record = one_round(run, now[0], first + offset)
        return carry, jax.tree.map(lambda all_, one: all_.at[offset].set(one), now[1], record)

    return jax.lax.fori_loop(0, count, body, (carry, blank))


def blank_record(run: Run) -> Record:
    """A record of the shape that rounds of `run` leave."""
    number, no = jnp.int32(0), jnp.array(False)
    places = jnp.zeros(run.roster.slots, jnp.int32)
    cohort = Cohort(places, places > 0, places > 0)
    return Record(number, jnp.float32(0), number, cohort, no, no_score(run.task), no_score(run.task), no)


class Program:
    """The compiled `several_rounds` for runs of one shape."""

    def __init__(self, run: Run, carry: Carry, stacked: bool):
        began = time.perf_counter()
        dynamic, static = eqx.partition(run, eqx.is_array)
        axes = stacked_axes(dynamic)

        def rounds(dynamic: Run, carry: Carry, first: Array, count: Array) -> tuple[Carry, Record]:
            def single(dynamic: Run, carry: Carry) -> tuple[Carry, Record]:
                return several_rounds(eqx.combine(dynamic, static), carry, first, count)

            return jax.vmap(single, in_axes=(axes, 0))(dynamic, carry) if stacked else single(dynamic, carry)

        zero = jnp.int32(0)
        with stacked_runs() if stacked else nullcontext():
            lowered = jax.jit(shared_out(rounds, _placement(carry))).lower(dynamic, carry, zero, zero)
        self.compiled = lowered.compile(compiler_options=_compiler_options(stacked))
        self.compile_seconds = time.perf_counter() - began

    def __call__(self, run: Run, carry: Carry, first: int, count: int) -> tuple[Carry, Record]:
        dynamic = eqx.filter(run, eqx.is_array)
        return jax.block_until_ready(self.compiled(dynamic, carry, np.int32(first), np.int32(count)))


def _compiler_options(stacked: bool) -> dict[str, Any]:
    """On a GPU, trying kernels out takes longer than stacked small models ever win back."""
    return {"xla_gpu_autotune_level": 0} if stacked and jax.default_backend() == "gpu" else {}


_PROGRAMS: dict[Any, Program] = {}
_LOCKS: defaultdict[Any, Lock] = defaultdict(Lock)


def program_for(run: Run, carry: Carry, stacked: bool = False) -> tuple[Program, float]:
    """The program for runs of this shape, and the seconds it took to compile just now.

    Threads that ask for the same program wait for the one that compiles it.
    """
    key = (shape_key((run, carry)), stacked, _placement(carry))
    with _LOCKS[key]:
        if key in _PROGRAMS:
            return _PROGRAMS[key], 0.0
        _PROGRAMS[key] = Program(run, carry, stacked)
        return _PROGRAMS[key], _PROGRAMS[key].compile_seconds


def shape_key(tree: PyTree[Any]) -> Any:
    """Equal for trees that one compiled program serves."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves)


def _placement(carry: Carry) -> Any:
    return jax.tree.leaves(carry)[0].sharding


def stack(runs: Sequence[Run]) -> Run:
    """One run with a leading axis over `runs`, which share the data set and all shapes."""
    axes = stacked_axes(runs[0])
    return jax.tree.map(
        lambda axis, *leaves: leaves[0] if axis is None else _stack_leaves(leaves),
        axes, *runs, is_leaf=lambda axis: axis is None,
    )  # fmt: skip


def _stack_leaves(leaves: Sequence[Array]) -> Array:
    """Stacked on the host: one operation on hundreds of device arrays would be compiled anew."""
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        words = np.stack([np.asarray(jax.random.key_data(leaf)) for leaf in leaves])
        return jax.random.wrap_key_data(jnp.asarray(words), impl=jax.random.key_impl(leaves[0]))
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def stacked_axes(run: Run) -> Run:
    """Which leaves of stacked runs have the leading axis: all but the data set's."""
    axes = jax.tree.map(lambda _: 0, run)
    return eqx.tree_at(lambda run: run.task.federation.dataset, axes, replace=None)


def start_stacked(run: Run) -> Carry:
    """The carries of stacked runs before the first round."""
    return eqx.filter_vmap(start, in_axes=(stacked_axes(run),))(run)
