"""A stride-1 convolution that picks its lowering by platform, and 2 x 2 max-pooling.

Inside a loop on a CPU, XLA's own convolution is many times slower than gathering patches
and taking one matrix product; on a GPU it is the other way round. Images are
(batch, height, width, channels).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Images = Float[Array, "batch height width channels"]
Kernel = Float[Array, "rows columns channels outputs"]
Convolved = Float[Array, "batch height width outputs"]


def convolve(x: Images, kernel: Kernel) -> Convolved:
    """Convolve with zero padding that keeps height and width."""
    return jax.lax.platform_dependent(x, kernel, cpu=by_patches, default=by_library)


def by_library(x: Images, kernel: Kernel) -> Convolved:
    return jax.lax.conv_general_dilated(
        x, kernel, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def by_patches(x: Images, kernel: Kernel) -> Convolved:
    batch, height, width, channels = x.shape
    rows, columns, _, outputs = kernel.shape
    above, left = (rows - 1) // 2, (columns - 1) // 2
    pad = ((0, 0), (above, rows - 1 - above), (left, columns - 1 - left), (0, 0))
    padded = jnp.pad(x, pad)
    patches = jnp.concatenate(
        [padded[:, i : i + height, j : j + width] for i in range(rows) for j in range(columns)], axis=-1
    )
    flat = patches.reshape(batch * height * width, rows * columns * channels)
    return (flat @ kernel.reshape(-1, outputs)).reshape(batch, height, width, outputs)


def halve(x: Images) -> Float[Array, "batch half_height half_width channels"]:
    """Max-pooling over 2 x 2 blocks; an odd last row or column is dropped."""
    batch, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
