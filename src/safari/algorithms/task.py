"""`Task`: what is to be learnt, and from whose samples."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from safari.data import Batch, Federation, Shard
from safari.models import Model, Params

Direction = Callable[[Params, Params], Params]


class Task(eqx.Module):
    """A model over a federation: losses, gradients, and stretches of local SGD."""

    model: Model
    federation: Federation

    def loss(self, params: Params, batch: Batch) -> Float[Array, ""]:
        """Cross-entropy, averaged by the batch's weights."""
        logits = self.model.apply(params, batch.x)
        target = jax.nn.one_hot(batch.y, self.federation.dataset.classes)
        surprise = jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * target, axis=1)
        return jnp.sum(batch.weight * surprise)

    def descend(
        self,
        params: Params,
        shard: Shard,
        key: Key[Array, ""],
        *,
        rate: Float[Array, ""] | float,
        steps: int,
        size: int,
        used: Int[Array, ""] | None = None,
        direction: Direction | None = None,
    ) -> Params:
        """SGD from `params` on minibatches of one shard; the parameters it ends at.

        `direction` turns the gradient at the current parameters into the step's direction.
        Of the `steps` steps only the first `used` count, where shards differ in size.
        """
        schedule = self.federation.schedule(shard, key, steps, size)

        def step(params: Params, now: tuple[Array, Array, Array]) -> tuple[Params, None]:
            number, samples, weight = now
            batch = self.federation.batch(samples, weight, jax.random.fold_in(key, -1 - number))
            towards = jax.grad(self.loss)(params, batch)
            if direction is not None:
                towards = direction(towards, params)
            moved = jax.tree.map(lambda p, g: p - rate * g, params, towards)
            if used is None:
                return moved, None
            return jax.tree.map(lambda new, old: jnp.where(number < used, new, old), moved, params), None

        return jax.lax.scan(step, params, (jnp.arange(steps), schedule.samples, schedule.weight))[0]

    def over_clients(self, function: Callable[..., PyTree[Any]], *slots: PyTree[Array]) -> PyTree[Any]:
        """Apply `function` to every slot of a cohort, batched or in turn as the model asks."""
        if self.model.side_by_side:
            return jax.vmap(function)(*slots)
        return jax.lax.map(lambda slot: function(*slot), slots)
