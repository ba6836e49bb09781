"""A dense layer, and how the weights of networks start."""

import jax
from jaxtyping import Array, Float, Key

from safari.models.base import Params


def init_layer(key: Key[Array, ""], shape: tuple[int, ...], fan_in: int, name: str = "weight") -> Params:
    """Weights and biases uniform within 1 / sqrt(fan_in), as PyTorch starts its layers.

    He's larger normal weights suit deeper networks; at the paper's rate of 0.1 they diverge
    on clients that hold one or two classes.
    """
    reach = fan_in**-0.5
    weight, bias = (jax.random.fold_in(key, part) for part in range(2))
    return {
        name: jax.random.uniform(weight, shape, minval=-reach, maxval=reach),
        "bias": jax.random.uniform(bias, shape[-1:], minval=-reach, maxval=reach),
    }


def init_dense(key: Key[Array, ""], inputs: int, outputs: int) -> Params:
    return init_layer(key, (inputs, outputs), inputs)


def dense(params: Params, x: Float[Array, "batch inputs"]) -> Float[Array, "batch outputs"]:
    return x @ params["weight"] + params["bias"]
