"""A dense layer with He initialisation, as the networks use it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from safari.models.base import Params


def he_normal(key: Key[Array, ""], shape: tuple[int, ...], fan_in: int) -> Float[Array, "..."]:
    """Normal weights of variance 2 / fan_in (He et al. 2015), for ReLU layers."""
    return jax.random.normal(key, shape) * jnp.sqrt(2.0 / fan_in)


def init_dense(key: Key[Array, ""], inputs: int, outputs: int) -> Params:
    return {"weight": he_normal(key, (inputs, outputs), inputs), "bias": jnp.zeros(outputs)}


def dense(params: Params, x: Float[Array, "batch inputs"]) -> Float[Array, "batch outputs"]:
    return x @ params["weight"] + params["bias"]
