"""Multinomial logistic regression."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from safari.devices import on_cpu, on_one_gpu
from safari.models import softmax_kernel
from safari.models.base import Model, Params


class Logistic(Model):
    """Softmax regression on the flattened sample; weights and biases start at zero.

    The weights lie as (classes, features): on CPUs both products of a step then run along
    the long axis. A barrier there keeps XLA from swapping the product back.

    Examples:
        >>> import jax, safari
        >>> safari.Logistic().init(None, (8, 8, 1), 10)["weight"].shape
        (10, 64)
    """

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        features = math.prod(shape)
        return {"weight": jnp.zeros((classes, features)), "bias": jnp.zeros(classes)}

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        logits = params["weight"] @ x.reshape(x.shape[0], -1).T + params["bias"][:, None]
        return (jax.lax.optimization_barrier(logits) if on_cpu() else logits).T

    def plain_sgd(
        self,
        params: Params,
        data: tuple[Array, Array],
        batches: tuple[Int[Array, "steps size"], Float[Array, "steps size"]],
        *,
        scale: Float[Array, ""],
        classes: int,
        rate: Float[Array, ""] | float,
        steps: Int[Array, ""] | int,
        precision: str,
    ) -> Params | None:
        if not on_one_gpu() or not softmax_kernel.serves(data[0], classes, batches[0].shape[1]):
            return None
        weight, bias = softmax_kernel.sgd(
            *data,
            *batches,
            (params["weight"], params["bias"]),
            scale=scale,
            rate=jnp.float32(rate),
            used=jnp.int32(steps),
            terms=1 if precision == "bfloat16" else 2,
        )
        return {"weight": weight, "bias": bias}
