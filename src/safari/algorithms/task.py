"""`Task`: what is to be learnt, and from whose samples."""

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from safari.data import Batch, Federation, Rows, Schedule, Shard
from safari.devices import over_slots
from safari.errors import check_choice
from safari.models import Logistic, Model, Params, softmax_kernel

Direction = Callable[[Params, Params], Params]
Precision = Literal["float32", "tf32", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
MOST_BYTES_AHEAD = 64 * 2**20
MOST_BYTES_TOGETHER = 16 * 2**20
MOST_BYTES_EACH = 2**19
"""Of all clients of a round, and of one: gathered at once they are copied once more, which costs more
than it saves where a client has many batches."""

MOST_WEIGHTS_BATCHED = 4096


class Task(eqx.Module):
    """A model over a federation: losses, gradients, and stretches of local SGD.

    `precision` is that of the model's products, forwards and backwards; parameters, losses
    and updates are float32 throughout.
    """

    model: Model
    federation: Federation
    precision: Precision = eqx.field(static=True, default="float32")

    def __check_init__(self) -> None:
        check_choice("train.precision", self.precision, PRECISIONS)

    def logits(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        """What the model says of a batch of normalised samples."""
        if self.precision == "bfloat16":
            params, x = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x))
            return self.model.apply(params, x).astype(jnp.float32)
        with jax.default_matmul_precision("tensorfloat32" if self.precision == "tf32" else "highest"):
            return self.model.apply(params, x)

    def test_logits(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        """The same for scores, which many runs ask for at once: float32 by three tf32 products.

        On tensor cores that is far faster than float32 products, and as close as rounding.
        """
        if self.precision != "float32" or not _has_tf32():
            return self.logits(params, x)
        with jax.default_matmul_precision("TF32_TF32_F32_X3"):
            return self.model.apply(params, x)

    def loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """Cross-entropy, averaged by the batch's weights."""
        logits = self.logits(params, batch.x)
        target = jax.nn.one_hot(batch.y, self.federation.dataset.classes)
        surprise = jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * target, axis=1)
        return jnp.sum(batch.weight * surprise)

    def lesson(self, shard: Shard, key: Key[Array, ""], steps: int, size: int) -> "Lesson":
        """What `steps` steps of SGD on minibatches of one shard go through."""
        schedule = self.federation.schedule(shard, key, steps, size)
        ahead = self.gathers_ahead(steps * size)
        return Lesson(key, schedule, self.federation.gather(schedule.samples) if ahead else None)

    def descend(
        self,
        params: Params,
        lesson: "Lesson",
        *,
        rate: Float[Array, ""] | float,
        used: Int[Array, ""] | None = None,
        clip: Float[Array, ""] | float | None = None,
        direction: Direction | None = None,
    ) -> Params:
        """SGD from `params` through a lesson; the parameters it ends at.

        Gradients longer than `clip` are scaled down to it; `direction` turns the gradient at
        the current parameters into the step's direction. Of the lesson's steps only the first
        `used` count, where shards differ in size.
        """
        schedule, key = lesson.schedule, lesson.key
        steps, size = schedule.samples.shape
        if clip is None and direction is None and self._fuses(size):
            return self._descend_fused(params, schedule, rate, steps if used is None else used)
        ahead = lesson.rows is not None
        source = lesson.rows if ahead else schedule.samples

        def step(params: Params, now: tuple[Array, Any, Array]) -> tuple[Params, None]:
            number, source, weight = now
            rows = source if ahead else self.federation.gather(source)
            batch = self.federation.batch(rows, weight, jax.random.fold_in(key, -1 - number))
            towards = jax.grad(self.loss)(params, batch)
            if clip is not None:
                towards = shortened(towards, clip)
            if direction is not None:
                towards = direction(towards, params)
            moved = jax.tree.map(lambda p, g: p - rate * g, params, towards)
            if used is None:
                return moved, None
            return jax.tree.map(lambda new, old: jnp.where(number < used, new, old), moved, params), None

        return jax.lax.scan(step, params, (jnp.arange(steps), source, schedule.weight))[0]

    def _fuses(self, size: int) -> bool:
        """Whether one GPU kernel can take all steps. Several GPUs share runs, which it cannot."""
        dataset, one_gpu = self.federation.dataset, jax.default_backend() == "gpu" and jax.device_count() == 1
        plain = dataset.scale.ndim == 0 and dataset.shift is None and not self.federation.augment
        softmax = type(self.model) is Logistic and plain
        return one_gpu and softmax and softmax_kernel.serves(dataset.x, dataset.classes, size)

    def _descend_fused(
        self, params: Params, schedule: Schedule, rate: Float[Array, ""] | float, used: Int[Array, ""] | int
    ) -> Params:
        dataset = self.federation.dataset
        weight, bias = softmax_kernel.descend(
            dataset.x,
            dataset.y,
            schedule.samples,
            schedule.weight,
            (params["weight"], params["bias"]),
            scale=dataset.scale,
            rate=jnp.float32(rate),
            used=jnp.int32(used),
            terms=1 if self.precision == "bfloat16" else 2,
        )
        return {"weight": weight, "bias": bias}

    def halves(self, params: Params, shard: Shard, key: Key[Array, ""], size: int) -> "Halves":
        """Loss and mean gradients over two disjoint halves of one minibatch of a shard.

        Two halves of independent samples give unbiased products: of the gradient with itself,
        and of what it is off another. A shard of a single sample has it in both.
        """
        schedule = self.federation.schedule(shard, key, 1, size)
        samples, weight = schedule.samples[0], schedule.weight[0]
        even = jnp.arange(size) % 2 == 0
        odd = jnp.where(shard.count > 1, ~even, even)
        rows = self.federation.gather(samples)

        def half(mine: Array) -> tuple[Array, Params]:
            kept = weight * mine
            batch = self.federation.batch(rows, kept / jnp.maximum(kept.sum(), 1e-9), key)
            return jax.value_and_grad(self.loss)(params, batch)

        (loss_a, a), (loss_b, b) = half(even), half(odd)
        return Halves((loss_a + loss_b) / 2, a, b)

    def gathers_ahead(self, samples: int, most: int = MOST_BYTES_AHEAD) -> bool:
        """On a CPU one gather for all steps beats one a step; a bound keeps its memory small."""
        features = self.federation.dataset.x.shape[-1] * self.federation.dataset.x.dtype.itemsize
        return jax.default_backend() == "cpu" and samples * features <= most

    def over_clients(
        self,
        function: Callable[..., PyTree[Any]],
        params: Params,
        slots: Int[Array, " slots"],
        prepare: Callable[..., PyTree[Any]] | None = None,
    ) -> PyTree[Any]:
        """Apply `function` to every slot of a cohort: batched, or in turn; shared out over devices."""
        return over_slots(function, slots, self.clients_batched(params), prepare)

    def clients_batched(self, params: PyTree[Any]) -> bool:
        """Whether models train side by side as batched products.

        Models that fill the machine by themselves go in turn. On a CPU that is so for all
        but the smallest: batched products of small matrices are slower there.
        """
        size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
        small = jax.default_backend() != "cpu" or size <= MOST_WEIGHTS_BATCHED
        return self.model.side_by_side and small


def _has_tf32() -> bool:
    """Whether this is a GPU whose tensor cores multiply in tf32."""
    device = jax.devices()[0]
    return device.platform == "gpu" and float(getattr(device, "compute_capability", 0)) >= 8


class Lesson(eqx.Module):
    """The minibatches of a stretch of local SGD; their rows where they are gathered ahead."""

    key: Key[Array, ""]
    schedule: Schedule
    rows: Rows | None


class Halves(eqx.Module):
    """Two independent estimates of a gradient, and the loss where they were taken."""

    loss: Float[Array, ""]
    a: Params
    b: Params


def inner(one: Params, two: Params) -> Float[Array, ""]:
    """The inner product of two sets of parameters."""
    return jnp.stack(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), one, two))).sum()


def shortened(gradient: Params, length: Float[Array, ""] | float) -> Params:
    """The gradient, scaled down to `length` where it is longer."""
    scale = jnp.minimum(1.0, length / jnp.maximum(jnp.sqrt(inner(gradient, gradient)), 1e-30))
    return jax.tree.map(lambda leaf: leaf * scale, gradient)
