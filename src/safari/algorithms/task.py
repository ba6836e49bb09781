"""`Task`: what is to be learnt, from whose samples, and how the program is laid out that learns it."""

import math
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from safari.data import Batch, Federation, Rows, Schedule, Shard
from safari.devices import compute_capability, on_cpu, once, over_slots
from safari.errors import check_choice
from safari.models import Model, Params

T = TypeVar("T")
Direction = Callable[[Params, Params], Params]
Precision = Literal["float32", "tf32", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
GRADIENT_BATCH = 1000
"""Samples a batch of a full gradient: enough to keep the machine busy, few enough to fit it."""

MOST_BYTES_AHEAD = 64 * 2**20
MOST_BYTES_TOGETHER = 16 * 2**20
MOST_BYTES_EACH = 2**19
"""Of all clients of a round, and of one: gathered at once they are copied once more, which costs more
than it saves where a client has many batches."""

MOST_WEIGHTS_BATCHED = 4096


class Task(eqx.Module):
    """A model over a federation: losses, gradients, local SGD.

    Args:
        model: the classifier.
        federation: who holds which samples.
        precision: that of the model's products, forwards and backwards; parameters, losses and
            updates are float32 throughout.
        stacked: whether the program trains several runs side by side.
        devices: how many devices divide the clients of a round among them.
        class_weights: a factor on the loss of a sample, by its class; None: all count the same.
    """

    model: Model
    federation: Federation
    precision: Precision = eqx.field(static=True, default="float32")
    stacked: bool = eqx.field(static=True, default=False)
    devices: int = eqx.field(static=True, default=1)
    class_weights: Float[Array, " classes"] | None = None

    def __check_init__(self) -> None:
        check_choice("train.precision", self.precision, PRECISIONS)

    # What the model says, and how wrong it is.

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
        if self.precision != "float32" or compute_capability() < 8:
            return self.logits(params, x)
        with jax.default_matmul_precision("TF32_TF32_F32_X3"):
            return self.model.apply(params, x)

    def loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """The model's loss (cross entropy), averaged by the weights of the batch and of the classes."""
        logits = self.logits(params, batch.x)
        target = jax.nn.one_hot(batch.y, self.federation.dataset.classes)
        return jnp.sum(self._weighted(batch.weight, batch.y) * self.model.loss(logits, target))

    def _weighted(self, weight: Float[Array, "*many"], y: Int[Array, "*many"]) -> Float[Array, "*many"]:
        """The weights of samples, times those of their classes."""
        return weight if self.class_weights is None else weight * self.class_weights[y]

    def gradient(self, params: Params, shard: Shard, most: int | None = None) -> Params:
        """The gradient of the mean loss over all samples of a shard, none of them augmented.

        Args:
            params: where it is taken.
            shard: a client's samples, `task.federation.client(i)`, or `task.federation.server`.
            most: how many it holds at the most, where that is known: no more are gone through.
        """

        def add(total: Params, batch: Batch) -> Params:
            return jax.tree.map(jnp.add, total, jax.grad(self.loss)(params, batch))

        return self.over_shard(add, jax.tree.map(jnp.zeros_like, params), shard, most or self._largest)

    def accuracy(self, params: Params, shard: Shard, most: int | None = None) -> Float[Array, ""]:
        """The share of a shard's samples, `most` at the most, that the model gets right."""

        def add(total: Float[Array, ""], batch: Batch) -> Float[Array, ""]:
            right = jnp.argmax(self.logits(params, batch.x), axis=1) == batch.y
            return total + jnp.sum(batch.weight * right)

        return self.over_shard(add, jnp.float32(0), shard, most or self._largest)

    @property
    def _largest(self) -> int:
        """The samples of the largest holder, the server among them."""
        return max(self.federation.largest, self.federation.server_most)

    def over_shard(self, add: Callable[[T, Batch], T], total: T, shard: Shard, most: int) -> T:
        """`add` of all batches of a shard of `most` samples at the most, none of them augmented.

        The weights add up to one over all batches; samples beyond the shard weigh 0.
        """
        federation = self.federation
        size = min(GRADIENT_BATCH, most)

        def step(total: T, number: Int[Array, ""]) -> tuple[T, None]:
            position = number * size + jnp.arange(size)
            inside = position < shard.count
            samples = federation.samples[shard.start + jnp.where(inside, position, 0)]
            weight = (inside / shard.count).astype(jnp.float32)
            return add(total, federation.plain_batch(federation.gather(samples), weight)), None

        return jax.lax.scan(step, total, jnp.arange(-(-most // size)))[0]

    # Local training.

    def minibatches(self, shard: Shard, key: Key[Array, ""], steps: int, size: int) -> "Minibatches":
        """What `steps` steps of SGD on minibatches of one shard go through."""
        schedule = self.federation.schedule(shard, key, steps, size)
        ahead = self.gathers_ahead(steps * size)
        return Minibatches(key, schedule, self.federation.gather(schedule.samples) if ahead else None)

    def sgd(
        self,
        params: Params,
        minibatches: "Minibatches",
        *,
        rate: Float[Array, ""] | float,
        used: Int[Array, ""] | None = None,
        clip: Float[Array, ""] | float | None = None,
        direction: Direction | None = None,
    ) -> Params:
        """SGD from `params`; the parameters it ends at.

        Args:
            params: where it starts.
            minibatches: a step each.
            rate: the step size.
            used: of all steps only the first so many count, where shards differ in size.
            clip: a gradient longer than this is scaled down to it.
            direction: turns the gradient at the current parameters into the step's direction.
        """
        schedule, key = minibatches.schedule, minibatches.key
        steps = schedule.samples.shape[0]
        if clip is None and direction is None:
            ended = self._sgd_in_one_kernel(params, schedule, rate, steps if used is None else used)
            if ended is not None:
                return ended
        ahead = minibatches.rows is not None
        source = minibatches.rows if ahead else schedule.samples

        def step(params: Params, now: tuple[Array, Any, Array]) -> tuple[Params, None]:
            number, source, weight = now
            rows = source if ahead else self.federation.gather(source)
            # Batches have the numbers from 0 up under this key, augmentation those from -1 down.
            batch = self.federation.batch(rows, weight, jax.random.fold_in(key, -1 - number))
            towards = jax.grad(self.loss)(params, batch)
            if clip is not None:
                towards = clipped(towards, clip)
            if direction is not None:
                towards = direction(towards, params)
            moved = jax.tree.map(lambda p, g: p - rate * g, params, towards)
            if used is None:
                return moved, None
            return jax.tree.map(lambda new, old: jnp.where(number < used, new, old), moved, params), None

        return jax.lax.scan(step, params, (jnp.arange(steps), source, schedule.weight))[0]

    def _sgd_in_one_kernel(
        self, params: Params, schedule: Schedule, rate: Float[Array, ""] | float, used: Int[Array, ""] | int
    ) -> Params | None:
        """All steps by a kernel of the model's own, where it has one that serves these samples."""
        dataset = self.federation.dataset
        plain = dataset.scale.ndim == 0 and dataset.shift is None and not self.federation.augment
        if not (plain and self.model.cross_entropy):
            return None
        weight = self._weighted(schedule.weight, dataset.y[schedule.samples])
        return self.model.plain_sgd(
            params, (dataset.x, dataset.y), (schedule.samples, weight),
            scale=dataset.scale, classes=dataset.classes, rate=rate, steps=used, precision=self.precision,
        )  # fmt: skip

    def halves(self, params: Params, shard: Shard, key: Key[Array, ""], size: int) -> "Halves":
        """Loss and mean gradients over two disjoint halves of one minibatch of a shard.

        Two halves of independent samples give unbiased products: of the gradient with itself,
        and of its difference to another. A shard of a single sample has it in both.
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

    # How the program is laid out.

    def choose(
        self, condition: Bool[Array, ""] | bool, then: Callable[[], T], otherwise: Callable[[], T]
    ) -> T:
        """`then()` or `otherwise()`.

        Runs side by side compute both and take one each. JAX would do the same with a `cond`, but
        would copy all that the branches look at, the data set among it, once for every run.
        """
        if not self.stacked:
            return jax.lax.cond(condition, then, otherwise)
        return jax.tree.map(lambda one, other: jnp.where(condition, one, other), then(), otherwise())

    def once(self, function: Callable[[], T]) -> T:
        """What `function` gives, computed by one of the devices for all."""
        return once(function, self.devices)

    def over_clients(
        self,
        function: Callable[..., PyTree[Any]],
        params: Params,
        slots: Int[Array, " slots"],
        prepare: Callable[..., PyTree[Any]] | None = None,
    ) -> PyTree[Any]:
        """Apply `function` to every slot of a cohort: batched, or in turn; divided among devices."""
        return over_slots(function, slots, self.devices, self.clients_batched(params), prepare)

    def gathers_ahead(self, samples: int, most: int = MOST_BYTES_AHEAD) -> bool:
        """On a CPU one gather for all steps beats one a step; a bound keeps its memory small."""
        features = self.federation.dataset.x.shape[-1] * self.federation.dataset.x.dtype.itemsize
        return on_cpu() and samples * features <= most

    def clients_batched(self, params: PyTree[Any]) -> bool:
        """Whether models train side by side as batched products.

        Models that fill the machine by themselves go in turn. On a CPU that is so for all
        but the smallest: batched products of small matrices are slower there.
        """
        size = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
        small = not on_cpu() or size <= MOST_WEIGHTS_BATCHED
        return self.model.side_by_side and small


class Minibatches(eqx.Module):
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


def clipped(gradient: Params, length: Float[Array, ""] | float) -> Params:
    """The gradient, scaled down to `length` where it is longer."""
    scale = jnp.minimum(1.0, length / jnp.maximum(jnp.sqrt(inner(gradient, gradient)), 1e-30))
    return jax.tree.map(lambda leaf: leaf * scale, gradient)
