"""Multinomial logistic regression."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from safari.models.base import Model, Params


class Logistic(Model):
    """Softmax regression on the flattened sample; weights and biases start at zero.

    The weights lie as (classes, features): on CPUs both products of a step then run along
    the long axis. A barrier there keeps XLA from swapping the product back.
    """

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        features = math.prod(shape)
        return {"weight": jnp.zeros((classes, features)), "bias": jnp.zeros(classes)}

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        logits = params["weight"] @ x.reshape(len(x), -1).T + params["bias"][:, None]
        return (jax.lax.optimization_barrier(logits) if jax.default_backend() == "cpu" else logits).T
