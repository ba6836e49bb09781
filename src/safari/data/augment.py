"""Crop and flip: for training batches of images, never for the test set."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, Shaped

CROP_PADDING = 4


def crop_and_flip(
    x: Shaped[Array, "count height width channels"], key: Key[Array, ""]
) -> Shaped[Array, "count height width channels"]:
    """Shift each image by up to four pixels (zeros come in) and mirror every other one."""
    count, height, width, channels = x.shape
    corner = jax.random.randint(key, (2, count), 0, 2 * CROP_PADDING + 1)
    flip = jax.random.bernoulli(jax.random.fold_in(key, 1), shape=(count, 1, 1, 1))
    pad = (CROP_PADDING, CROP_PADDING)
    padded = jnp.pad(x, ((0, 0), pad, pad, (0, 0)))

    def crop(image: Array, top: Array, left: Array) -> Array:
        return jax.lax.dynamic_slice(image, (top, left, 0), (height, width, channels))

    x = jax.vmap(crop)(padded, corner[0], corner[1])
    return jnp.where(flip, x[:, :, ::-1], x)
