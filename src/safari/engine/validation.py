"""How good a model is on the samples that the server holds out, and which round's was the best so far."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from safari.algorithms import Task
from safari.data import Batch, Federation
from safari.devices import placed
from safari.errors import check
from safari.models import Params
from safari.models.base import cross_entropy


class Validation(eqx.Module):
    """Balanced accuracy and mean loss on the held-out samples; NaN where nothing was evaluated.

    A class without held-out samples does not enter the balanced accuracy.
    """

    balanced_accuracy: Float[Array, ""]
    loss: Float[Array, ""]

    def better_than(self, other: "Validation") -> Bool[Array, ""]:
        """By balanced accuracy; the lower loss breaks ties. What is NaN is never better."""
        higher = self.balanced_accuracy > other.balanced_accuracy
        equal = self.balanced_accuracy == other.balanced_accuracy
        return higher | (equal & (self.loss < other.loss))


class Best(eqx.Module):
    """The best validation score so far, and the round that reached it, counted from 1; 0: none yet.

    `stopped` is the round that training stopped after, because too many had gone by without a better
    score; 0: it goes on.
    """

    score: Validation
    round: Int[Array, ""]
    stopped: Int[Array, ""]


def not_validated() -> Validation:
    return Validation(placed(np.nan, np.float32), placed(np.nan, np.float32))


def no_best(task: Task) -> Best | None:
    """Before the first round; None where nothing is held out."""
    if task.federation.validation_most == 0:
        return None
    return Best(
        Validation(placed(-1.0, np.float32), placed(np.inf, np.float32)),
        placed(0, np.int32),
        placed(0, np.int32),
    )


def validate(task: Task, params: Params) -> Validation:
    """Score `params` on all held-out samples."""
    federation = task.federation
    classes = federation.dataset.classes

    def add(total: tuple[Array, Array, Array], batch: Batch) -> tuple[Array, Array, Array]:
        logits = task.logits(params, batch.x)
        target, inside = jax.nn.one_hot(batch.y, classes), batch.weight > 0
        right = (jnp.argmax(logits, axis=1) == batch.y) & inside
        loss = jnp.sum(jnp.where(inside, batch.weight * cross_entropy(logits, target), 0.0))
        return (
            total[0] + (target * right[:, None]).sum(axis=0),
            total[1] + (target * inside[:, None]).sum(axis=0),
            total[2] + loss,
        )

    def score() -> Validation:
        zero = jnp.zeros(classes)
        correct, held, loss = task.over_shard(
            add, (zero, zero, jnp.float32(0)), federation.validation, federation.validation_most
        )
        recall = jnp.where(held > 0, correct / jnp.maximum(held, 1), 0.0)
        return Validation(recall.sum() / (held > 0).sum(), loss)

    return task.once(score)


def validated(
    task: Task,
    params: Params,
    best: Best | None,
    patience: int | None,
    due: Bool[Array, ""],
    number: Int[Array, ""],
) -> tuple[Validation | None, Best | None, Bool[Array, ""]]:
    """The score of the model after round `number` where one is due; the best so far; whether this is it."""
    if best is None:
        return None, None, jnp.array(False)
    score = jax.lax.cond(due, partial(validate, task, params), not_validated)
    better, done = score.better_than(best.score), number + 1
    held = jax.tree.map(lambda one, two: jnp.where(better, one, two), score, best.score)
    round = jnp.where(better, done, best.round)
    stopped = best.stopped
    if patience is not None:
        stopped = jnp.where(due & (done - round >= patience), done, 0)
    return score, Best(held, round, stopped), better


def check_patience(patience: int | None, evaluate_every: int, federation: Federation) -> None:
    if patience is None:
        return
    held_out = federation.validation_most > 0
    check(held_out, "train.patience", patience, "needs held-out samples: set data.validation")
    least = f"must be a number of rounds, at least train.evaluate_every ({evaluate_every})"
    check(patience >= evaluate_every, "train.patience", patience, least)
