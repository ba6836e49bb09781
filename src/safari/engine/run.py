"""One training run as a pytree, and one of its rounds.

A `Run` holds everything that a run is made of, a `Carry` everything that changes from round to round.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from safari.algorithms import Algorithm, Precision, Schedule, Task, Turn
from safari.algorithms.private import check_private
from safari.data import Federation
from safari.engine.class_weights import ClassWeights, class_weights_of
from safari.engine.delivery import (
    DELIVER,
    AfterRound,
    Deliver,
    Kept,
    check_deliver,
    delivered_score,
    kept_after,
    nothing_kept,
    scored,
)
from safari.engine.evaluation import Score, no_score
from safari.engine.metrics import try_own_metrics
from safari.engine.validation import Best, Validation, check_patience, no_best, not_validated, validated
from safari.engine.warm_start import starting_params
from safari.errors import check, check_count, check_seed, naming
from safari.models import Model, Params
from safari.models.base import check_loss
from safari.participation import Cohort, Participation, Roster
from safari.randomness import Streams, streams_of
from safari.registry import MODELS, is_own


class Run(eqx.Module):
    """One training run, ready to be compiled: floats have become leaves."""

    task: Task
    algorithm: Algorithm
    roster: Roster
    streams: Streams
    rounds: int = eqx.field(static=True)
    evaluate_every: int = eqx.field(static=True)
    deliver: Deliver = eqx.field(static=True, default=DELIVER)
    patience: int | None = eqx.field(static=True, default=None)
    schedule: Schedule | None = None
    begins: Params | None = None
    """The parameters before the first round, where they are not the model's own."""
    metrics: tuple[str, ...] = eqx.field(static=True, default=())

    def algorithm_in(self, number: Int[Array, ""]) -> Algorithm:
        """The algorithm with the rates of round `number`."""
        if self.schedule is None:
            return self.algorithm
        return self.schedule.apply(self.algorithm, number, self.rounds)


class Carry(eqx.Module):
    """All that changes from round to round; `best` is None where nothing is held out."""

    state: PyTree[Any]
    availability: PyTree[Any]
    kept: Kept
    best: Best | None


class Record(eqx.Module):
    """What is kept of a round.

    `score` is of the model after the round, `delivered` of the one that would be handed over. `validation`
    is of the model after the round, on the samples that the server holds out; None where it holds out none.
    """

    kind: Int[Array, ""]
    q: Float[Array, ""]
    down: Float[Array, ""]
    up: Float[Array, ""]
    columns: dict[str, Float[Array, ""]]
    available: Int[Array, ""]
    cohort: Cohort
    evaluated: Bool[Array, ""]
    score: Score
    delivered: Score
    validation: Validation | None
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
    *,
    deliver: Deliver = DELIVER,
    patience: int | None = None,
    schedule: Schedule | None = None,
    start: Any = None,
    metrics: Sequence[str] = (),
    class_weights: ClassWeights | None = None,
) -> Run:
    """Check that the parts fit together and bind them into a `Run`; the arguments are those of `train`.

    Raises:
        InputError: if they do not.
    """
    check_train(rounds, seed, evaluate_every)
    with naming("participation"):
        roster = participation.resolve(federation.size, seed, federation.client_names)
    check_deliver(deliver, federation)
    check_patience(patience, evaluate_every, federation)
    begins = None if start is None else starting_params(start, model, federation.dataset)
    dataset = federation.dataset
    try_own_metrics(metrics, np.asarray(dataset.y_test), dataset.classes, "train.metrics")
    if is_own(MODELS.name_of(type(model))):
        check_loss(model, dataset.classes)
    weights = class_weights_of(class_weights, federation)
    algorithm, federation = algorithm.bind(federation, seed)
    check_rates(algorithm, roster, seed)
    check_private(algorithm)
    task = Task(model, federation, precision, class_weights=weights)
    run = Run(
        task, algorithm, roster, streams_of(seed), rounds, evaluate_every, deliver, patience, schedule,
        begins, tuple(metrics),
    )  # fmt: skip
    return jax.tree.map(lambda leaf: jnp.float32(leaf) if isinstance(leaf, float | int) else leaf, run)


def check_rates(algorithm: Algorithm, roster: Roster, seed: int) -> None:
    """Refuse an availability that does not know its rates where the method must."""
    needing = [type(part).__name__ for part in algorithm.parts() if part.needs_rates]
    if needing:
        pattern, clients = roster.availability, roster.clients
        state = jax.eval_shape(lambda: roster.init(streams_of(seed)))
        rates = jax.eval_shape(lambda state: pattern.rates(state, jnp.int32(0), clients), state)
        allowed = f"does not say how often clients come, which {needing[0]} must know; write its `rates`"
        check(rates is not None, "participation.availability", type(pattern).__name__, allowed)


def check_train(rounds: int, seed: int, evaluate_every: int) -> None:
    """Refuse numbers that no run can have."""
    check_count("train.rounds", rounds)
    check_count("train.evaluate_every", evaluate_every)
    check_seed("train.seed", seed)


def initial_params(run: Run) -> Params:
    """The parameters before the first round."""
    if run.begins is not None:
        return run.begins
    dataset = run.task.federation.dataset
    with naming("model"):
        return run.task.model.init(run.streams.initialisation, dataset.shape, dataset.classes)


def start(run: Run) -> Carry:
    """The carry before the first round."""
    params = initial_params(run)
    kept = nothing_kept(run.task, params, run.deliver)
    state, availability = run.algorithm.init(params, run.task), run.roster.init(run.streams)
    return Carry(state, availability, kept, no_best(run.task))


def draw_turn(
    run: Run,
    availability: PyTree[Any],
    number: Int[Array, ""],
    prefer: Float[Array, " clients"] | None = None,
) -> tuple[PyTree[Any], Array, Turn]:
    """The random draws of a round: who is available, who is picked, the coin, the batches."""
    streams = run.streams
    availability, available, cohort = run.roster.draw(availability, streams, number, prefer)
    turn = Turn(
        number,
        run.rounds,
        cohort,
        coin=jax.random.uniform(jax.random.fold_in(streams.coin, number)),
        client_batches=jax.random.fold_in(streams.client_batches, number),
        server_batches=jax.random.fold_in(streams.server_batches, number),
        methods=jax.random.fold_in(streams.methods, number),
        rates=run.roster.rates(availability, number, available),
        expected=run.roster.expected(availability, number),
    )
    return availability, available, turn


def one_round(run: Run, carry: Carry, number: Int[Array, ""]) -> tuple[Carry, Record]:
    """Round `number`, counted from 0; nothing changes in it once the run has stopped."""
    if run.patience is None or carry.best is None:
        return _trained(run, carry, number)
    going = carry.best.stopped == 0
    return run.task.choose(going, lambda: _trained(run, carry, number), lambda: (carry, blank_record(run)))


def _trained(run: Run, carry: Carry, number: Int[Array, ""]) -> tuple[Carry, Record]:
    prefer = run.algorithm.prefer(carry.state, number)
    availability, available, turn = draw_turn(run, carry.availability, number, prefer)
    state, note = run.algorithm_in(number).round(carry.state, run.task, turn)
    model = run.algorithm.deliver(state)
    due = ((number + 1) % run.evaluate_every == 0) | (number + 1 == run.rounds)
    score = jax.lax.cond(due, lambda: scored(run.task, model), lambda: no_score(run.task))
    validation, best, is_best = validated(run.task, model, carry.best, run.patience, due, number)
    now = AfterRound(model, score, due, note.synced(), is_best)
    kept = kept_after(run.task, run.deliver, run.evaluate_every, carry.kept, now)
    finite = jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)]).all()
    record = Record(
        note.kind(), note.q, note.down, note.up, note.columns, available.sum(), turn.cohort, due, score,
        delivered_score(kept, score), validation, finite,
    )  # fmt: skip
    return Carry(state, availability, kept, best), record


def blank_record(run: Run) -> Record:
    """A record of the shape that rounds of `run` leave."""
    zero, no = jnp.int32(0), jnp.array(False)
    places = jnp.zeros(run.roster.slots, jnp.int32)
    cohort = Cohort(places, places > 0, places > 0)
    number, columns = jnp.float32(0), {name: jnp.float32(0) for name in run.algorithm.columns}
    score = no_score(run.task)
    validation = None if no_best(run.task) is None else not_validated()
    return Record(zero, number, number, number, columns, zero, cohort, no, score, score, validation, ~no)
