"""How good a model is: accuracy class by class, and loss, on the test set."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from safari.algorithms import Task
from safari.algorithms.task import cross_entropy
from safari.devices import placed
from safari.models import Params

BATCH = 1000


class Score(eqx.Module):
    """Correct answers of each class and the mean loss; NaN loss where nothing was evaluated."""

    correct: Int[Array, " classes"]
    loss: Float[Array, ""]


def no_score(task: Task) -> Score:
    return Score(placed(np.zeros(task.federation.dataset.classes, np.int32)), placed(np.nan, np.float32))


def evaluate(task: Task, params: Params) -> Score:
    """Score `params` on the whole test set, a batch at a time."""
    dataset = task.federation.dataset
    samples = len(dataset.y_test)
    size = min(BATCH, samples)

    def add(score: Score, number: Int[Array, ""]) -> tuple[Score, None]:
        start = jnp.minimum(number * size, samples - size)
        fresh = start + jnp.arange(size) >= number * size
        x = jax.lax.dynamic_slice_in_dim(dataset.x_test, start, size)
        y = jax.lax.dynamic_slice_in_dim(dataset.y_test, start, size)
        logits = task.test_logits(params, dataset.normalise(dataset.shaped(x)))
        right = (jnp.argmax(logits, axis=1) == y) & fresh
        target = jax.nn.one_hot(y, dataset.classes)
        correct = score.correct + jnp.sum(target * right[:, None], axis=0).astype(jnp.int32)
        loss = jnp.sum(jnp.where(fresh, cross_entropy(logits, target), 0.0)) / samples
        return Score(correct, score.loss + loss), None

    start = Score(jnp.zeros(dataset.classes, jnp.int32), jnp.zeros(()))
    return jax.lax.scan(add, start, jnp.arange(-(-samples // size)))[0]
