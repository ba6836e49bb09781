"""Classes of the user's own, tried before anything is written: whatever is wrong with them is bad input.

Each is tried by itself, so that a message names the one to blame, then all of them in one round.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from safari.algorithms import Algorithm, Client, ClientAlgorithm
from safari.data import Dataset, Federation
from safari.engine import HISTORY_SCHEMA, Run, Training, draw_turn, initial_params, prepare, start
from safari.engine.result import VALIDATION_SCHEMA
from safari.engine.run import one_round
from safari.engine.size import check_fits
from safari.errors import InputError, naming
from safari.models import Model
from safari.participation import Participation
from safari.randomness import streams_of
from safari.registry import ALGORITHMS, is_own, reason

_PASSED: set[Any] = set()
"""What has been tried in this process: a sweep asks for the same hundreds of times."""


class Unsound(Exception):
    """What a class of the user's own does wrong, as a message says it."""


def prepare_tried(
    own: dict[str, str],
    federation: Federation,
    algorithm: Algorithm,
    model: Model,
    participation: Participation,
    rounds: int,
    seed: int,
    *settings: Any,
    **options: Any,
) -> Run:
    """`prepare`, once the user's own classes have been tried.

    Args:
        own: the keys of the spec that name the user's classes, and the names.
        federation: as for `prepare`, like all that follows.

    Raises:
        InputError: if one of them fails, returns something of another shape than it should, or gives
            parameters that are not finite.
    """
    parts = (federation, algorithm, model, participation, rounds, seed, *settings)
    with _blaming(own, "", "cannot be compiled"):
        # Static fields decide what Python code runs: another value of theirs is tried anew.
        static = jax.tree.structure((algorithm, model, participation.availability, options["schedule"]))
        case = (tuple(own.items()), static, federation.dataset.shape, federation.size)
        if case in _PASSED:
            return prepare(*parts, **options)
    with _blaming(own, "participation", "fails"):
        _try_availability(participation, federation.size, seed)
    with _blaming(own, "model", "fails"):
        _try_model(model, federation.dataset, seed)
    with _blaming(own, "algorithm", "fails in the first round"):
        run = prepare(*parts, **options)
        for part in run.algorithm.parts():
            if isinstance(part, ClientAlgorithm) and is_own(ALGORITHMS.name_of(type(part))):
                jax.eval_shape(partial(_try_moves, part, run))
        _try_round(run)
    trains = {key: name for key, name in own.items() if key.partition(".")[0] in ("algorithm", "model")}
    if trains and tuple(trains.items()) not in _PASSED:
        with _blaming(trains, "", "fails in the first round"):
            _train_one_round(run)
        _PASSED.add(tuple(trains.items()))
    _PASSED.add(case)
    return run


def _try_availability(participation: Participation, clients: int, seed: int) -> None:
    pattern, key = participation.availability, streams_of(seed).availability
    with naming("participation.availability"):
        pattern.check(clients)
    before = jax.eval_shape(lambda: pattern.init(key, clients))
    found = jax.eval_shape(lambda state: pattern.step(state, key, jnp.int32(0), clients), before)
    if not (isinstance(found, tuple) and len(found) == 2):
        raise Unsound("step must return two things: the state, and who can take part")
    after, mask = found
    if getattr(mask, "shape", None) != (clients,) or mask.dtype != bool:
        raise Unsound(f"step must return a boolean for each of the {clients} clients, not {_kind(mask)}")
    _expect_same(before, after, "step", "state")


def _try_model(model: Model, dataset: Dataset, seed: int) -> None:
    key = streams_of(seed).initialisation
    with naming("model"):
        params = jax.eval_shape(lambda: model.init(key, dataset.shape, dataset.classes))
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(params)):
        raise Unsound("init must return arrays of floats and nothing else")
    samples = jax.ShapeDtypeStruct((2, *dataset.shape), jnp.float32)
    logits = jax.eval_shape(model.apply, params, samples)
    if getattr(logits, "shape", None) != (2, dataset.classes):
        wanted = f"must return logits of shape (2, {dataset.classes}) for two samples"
        raise Unsound(f"apply {wanted}, not {_kind(logits)}")


def _try_moves(clients: ClientAlgorithm, run: Run) -> None:
    """Each move by itself: what JAX says of the round that they make names none of them."""
    task, first = run.task, jnp.int32(0)
    state = clients.init(initial_params(run), task)
    turn = draw_turn(run, run.roster.init(run.streams), first)[2]
    sent = clients.broadcast(state, task, turn)
    own = jax.tree.map(lambda memory: memory[first], state.client_memory)
    own = clients.begin(Client(task, first, turn.stream("client")), state.params, sent, own)
    began = clients.start(own, state.params)
    _expect_same(state.params, began, "start", "params")
    towards = clients.direction(state.params, began, began, sent, own)
    _expect_same(state.params, towards, "direction", "gradient")
    reports = clients.collect(state, task, turn)
    slots = run.roster.slots
    if reports.weight.shape != (slots,):
        raise Unsound(f"weigh must return a weight for each of {slots} slots, not {_kind(reports.weight)}")
    _expect_same(state, clients.absorb(state, reports, task, turn), "absorb", "state")


def _try_round(run: Run) -> None:
    before = jax.eval_shape(lambda: start(run))
    after, record = jax.eval_shape(lambda carry: one_round(run, carry, jnp.int32(0)), before)
    _expect_same(before.state, after.state, "round", "state")
    noted, named = sorted(record.columns), sorted(run.algorithm.columns)
    if noted != named:
        raise Unsound(f"its notes have the columns {noted}, its `columns` names {named}")
    if taken := [name for name in named if name in {**HISTORY_SCHEMA, **VALIDATION_SCHEMA}]:
        raise Unsound(f"every history has a column {taken[0]} already; call it something else")


def _train_one_round(run: Run) -> None:
    check_fits(run)
    training = Training(run, devices=jax.devices()[:1])
    training.advance(most=1)
    for leaf in jax.tree.leaves(training.carry.state.params):
        if not np.isfinite(np.asarray(leaf)).all():
            raise Unsound("gives parameters that are not finite in the first round")


def _expect_same(before: PyTree[Any], after: PyTree[Any], move: str, what: str) -> None:
    """A state must keep its shape, or rounds cannot follow each other in one program."""
    named = [dict(jax.tree.leaves_with_path(tree)) for tree in (before, after)]
    for path in dict.fromkeys([*named[0], *named[1]]):
        kinds = [_kind(tree[path]) if path in tree else "nothing" for tree in named]
        if kinds[0] != kinds[1]:
            name = f"{what}{jax.tree_util.keystr(path)}"
            raise Unsound(f"{move} turns {name} from {kinds[0]} into {kinds[1]}")


def _kind(value: Any) -> str:
    """What a value is, in a message: float32[10,3]."""
    if not hasattr(value, "dtype"):
        return type(value).__name__
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


@contextmanager
def _blaming(own: dict[str, str], table: str, what: str) -> Iterator[None]:
    """Whatever goes wrong inside is bad input: the user's classes in this table are to blame, or all."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a user's class may fail in any way
        said = str(error) if isinstance(error, Unsound) else f"{what} ({reason(error)})"
        keys = [key for key in own if key.startswith(f"{table}.")] or list(own)
        first = {own[key]: key for key in reversed(keys)}  # a name may stand under two keys
        raise InputError(" and ".join(reversed(first.values())), ", ".join(reversed(first)), said) from None
