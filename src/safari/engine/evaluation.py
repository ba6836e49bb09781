"""How good a model is on the test set: counts by class and loss in every round, metrics at the end."""

from collections.abc import Collection
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from safari.algorithms import Task
from safari.data import Federation
from safari.devices import placed
from safari.engine.client_metrics import ClientMetrics
from safari.engine.metrics import Metrics, by_client, own_metric
from safari.engine.trained_model import TrainedModel
from safari.models import Params
from safari.models.base import cross_entropy

BATCH = 1000


class Score(eqx.Module):
    """By class, how often it was recognised and how often named; and the mean loss, NaN where there is none.

    With the labels' counts, recall, precision and F1 of every class follow from it.
    """

    correct: Int[Array, " classes"]
    predicted: Int[Array, " classes"]
    loss: Float[Array, ""]


def no_score(task: Task) -> Score:
    nothing = placed(np.zeros(task.federation.dataset.classes, np.int32))
    return Score(nothing, nothing, placed(np.nan, np.float32))


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
        named = jnp.argmax(logits, axis=1)
        target = jax.nn.one_hot(y, dataset.classes)
        correct = jnp.sum(target * ((named == y) & fresh)[:, None], axis=0).astype(jnp.int32)
        answer = jax.nn.one_hot(named, dataset.classes)
        predicted = jnp.sum(answer * fresh[:, None], axis=0).astype(jnp.int32)
        loss = jnp.sum(jnp.where(fresh, cross_entropy(logits, target), 0.0)) / samples
        return Score(score.correct + correct, score.predicted + predicted, score.loss + loss), None

    nothing = jnp.zeros(dataset.classes, jnp.int32)
    start = Score(nothing, nothing, jnp.zeros(()))
    return jax.lax.scan(add, start, jnp.arange(-(-samples // size)))[0]


def metrics_on_test(
    model: TrainedModel,
    federation: Federation,
    own: tuple[str, ...] = (),
    absent: Collection[int] | None = None,
) -> tuple[Metrics, dict[str, float]]:
    """How good a trained model is on the test set, and what the user's `own` functions say. Host code.

    Client by client, it is scored on what the clients hold out; else on the test set, where that names
    clients. `absent` are those that never take part, by number.
    """
    dataset = federation.dataset
    probabilities, y = model.probabilities(np.asarray(dataset.x_test)), np.asarray(dataset.y_test)
    found = {name: own_metric(name, "train.metrics")(y, probabilities) for name in own}
    clients = _by_client(model, federation, probabilities, absent)
    return replace(Metrics.of(y, probabilities, dataset.labels), clients=clients), found


def _by_client(
    model: TrainedModel, federation: Federation, probabilities: np.ndarray, absent: Collection[int] | None
) -> ClientMetrics | None:
    dataset, held_out = federation.dataset, federation.held_out_by_clients()
    known = federation.names
    if held_out is not None:
        names, samples = known, np.concatenate(held_out)
        holder = np.repeat(np.arange(len(held_out)), [len(part) for part in held_out])
        y = np.asarray(dataset.y)[samples]
        probabilities = model.probabilities(np.asarray(dataset.x)[samples])
    elif dataset.test_client is not None:
        names, holder, y = dataset.test_clients, np.asarray(dataset.test_client), np.asarray(dataset.y_test)
    else:
        return None
    if absent is None:
        return by_client(y, probabilities, holder, names)
    come = {name for place, name in enumerate(known) if place not in absent}
    return by_client(y, probabilities, holder, names, [name in come for name in names])
