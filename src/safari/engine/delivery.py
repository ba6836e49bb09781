"""Which model is delivered: the one that would be handed over if training ended now, and its score."""

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from safari.algorithms import Task
from safari.data import Federation
from safari.devices import placed
from safari.engine.evaluation import Score, evaluate, no_score
from safari.errors import check, check_choice
from safari.models import Params

Deliver = Literal["synced", "last", "best", "average"]
DELIVER: Deliver = "synced"
"""What is delivered if nothing is said."""

FORGET = 0.9
"""In the average, a model counts so much less with every model that comes after it."""


class Kept(eqx.Module):
    """The model that is kept to be delivered, whether there is one yet, its score on the test set.

    `weight` is that of all models in an average; None where there is none.
    """

    params: Params
    exists: Bool[Array, ""]
    score: Score
    weight: Float[Array, ""] | None


def check_deliver(deliver: str, federation: Federation) -> None:
    check_choice("train.deliver", deliver, get_args(Deliver))
    held_out = federation.validation_most > 0
    check(
        deliver != "best" or held_out, "train.deliver", deliver, "needs held-out samples: set data.validation"
    )


def nothing_kept(task: Task, params: Params, deliver: Deliver) -> Kept:
    """Before the first round."""
    return Kept(
        params, placed(False), no_score(task), placed(0.0, "float32") if deliver == "average" else None
    )


class AfterRound(eqx.Module):
    """What a round left: its model and the score of it, where one is `due`; whether it is `synced`, one to
    hand over as the round's note says, and whether it is the best so far on the held-out samples."""

    model: Params
    score: Score
    due: Bool[Array, ""]
    synced: Bool[Array, ""] | bool
    best: Bool[Array, ""]


def kept_after(task: Task, deliver: Deliver, every: int, before: Kept, now: AfterRound) -> Kept:
    """What is kept after a round, where `every` so many rounds are scored."""
    if deliver == "best":
        params, score = _where(now.best, (now.model, now.score), (before.params, before.score))
        return Kept(params, before.exists | now.best, score, None)
    if deliver == "last" or now.synced is False:
        return before
    if deliver == "average":
        return _averaged(task, every, before, now)
    return _synced(task, every, before, now)


def _synced(task: Task, every: int, before: Kept, now: AfterRound) -> Kept:
    """The model that the last round left in which the server acted, scored whenever scores are due.

    Where every round is scored its score is known already; otherwise it has to be computed.
    """
    acted = jnp.asarray(now.synced)
    params, exists = _where(acted, now.model, before.params), before.exists | acted
    if every == 1:
        return Kept(params, exists, _where(acted, now.score, before.score), None)

    def score_now() -> Score:
        return task.choose(exists & ~acted, lambda: scored(task, params), lambda: now.score)

    return Kept(params, exists, jax.lax.cond(now.due, score_now, lambda: before.score), None)


def _averaged(task: Task, every: int, before: Kept, now: AfterRound) -> Kept:
    r"""The average of the models that server rounds left: the k-th last has the weight FORGET^k."""
    assert before.weight is not None
    acted = jnp.asarray(now.synced)
    weight = jnp.where(acted, 1 + FORGET * before.weight, before.weight)
    share = jnp.where(acted, 1 / jnp.maximum(weight, 1), 0.0)
    params = jax.tree.map(lambda old, new: old + share * (new - old), before.params, now.model)
    exists = before.exists | acted

    def score_now() -> Score:
        changed = acted if every == 1 else exists
        return task.choose(changed, lambda: scored(task, params), lambda: before.score)

    return Kept(params, exists, jax.lax.cond(now.due, score_now, lambda: before.score), weight)


def delivered_score(kept: Kept, score: Score) -> Score:
    """The score of what would be delivered, if the model after the round has `score`."""
    return _where(kept.exists, kept.score, score)


def scored(task: Task, params: Params) -> Score:
    """The score on the test set, computed by one of the devices for all."""
    return task.once(lambda: evaluate(task, params))


def _where(condition: Bool[Array, ""], then: PyTree, otherwise: PyTree) -> PyTree:
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), then, otherwise)
