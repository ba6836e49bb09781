"""How far apart the labels of two parties are."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def jensen_shannon(one: Float[Array, " classes"], other: Float[Array, " classes"]) -> Float[Array, ""]:
    """The divergence of two label distributions, from their counts; 0 where one of them is empty."""
    p, q = one / jnp.maximum(one.sum(), 1e-30), other / jnp.maximum(other.sum(), 1e-30)
    middle = jnp.maximum((p + q) / 2, 1e-30)

    def from_middle(p: Float[Array, " classes"]) -> Float[Array, ""]:
        return jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0) / middle), 0.0))

    known = (one.sum() > 0) & (other.sum() > 0)
    return jnp.where(known, (from_middle(p) + from_middle(q)) / 2, 0.0)
