"""A convolution followed by 2 x 2 max-pooling, lowered as each platform likes it.

Inside a loop on a CPU, XLA's own convolution is many times slower than gathering patches
and taking one matrix product. On a GPU, images of few channels keep the matrix units idle:
there the four pixels of a pooling block become channels, and the four outputs that are
pooled come out side by side. Images are (batch, height, width, channels).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Images = Float[Array, "batch height width channels"]
Kernel = Float[Array, "rows columns channels outputs"]
Convolved = Float[Array, "batch height width outputs"]
Pooled = Float[Array, "batch half_height half_width outputs"]

LEAST_BLOCKED_KERNEL = 5
"""Blocks of 2 x 2 spread a kernel of 5 over 6 pixels (1.4 times the work), one of 3 over 6 as well."""


def convolve_and_halve(x: Images, kernel: Kernel) -> Pooled:
    """Convolve with zero padding that keeps height and width, then take 2 x 2 maxima.

    An odd last row or column is dropped.
    """
    whole = x.shape[1] % 2 == 0 and x.shape[2] % 2 == 0
    square = kernel.shape[0] == kernel.shape[1] and kernel.shape[0] % 2 == 1
    blocked = whole and square and kernel.shape[0] >= LEAST_BLOCKED_KERNEL
    return jax.lax.platform_dependent(
        x,
        kernel,
        cpu=lambda x, kernel: halve(by_patches(x, kernel)),
        default=by_blocks if blocked else lambda x, kernel: halve(by_library(x, kernel)),
    )


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


def by_blocks(x: Images, kernel: Kernel) -> Pooled:
    """Convolution and pooling over images of 2 x 2 blocks."""
    batch, height, width, channels = x.shape
    outputs = kernel.shape[-1]
    blocks = x.reshape(batch, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    blocks = blocks.reshape(batch, height // 2, width // 2, 4 * channels)
    four = by_library(blocks, _block_kernel(kernel))
    return four.reshape(batch, height // 2, width // 2, 4, outputs).max(axis=3)


def _block_kernel(kernel: Kernel) -> Float[Array, "block_rows block_columns inputs four_outputs"]:
    """The kernel that does to blocks what `kernel` does to pixels, once for each output pixel.

    Output pixel a of a block sees input pixel c of the block `shift` away through row
    u = 2 shift + c - a + reach of the kernel, where there is one. The spread over both axes
    is a product with constant zeros and ones.
    """
    size, _, channels, outputs = kernel.shape
    reach = size // 2
    least, most = -reach // 2, (reach + 1) // 2
    width = 2 * max(-least, most) + 1
    spread = np.zeros((width, 2, 2, size), np.float32)
    for shift, c, a in np.ndindex(width, 2, 2):
        u = 2 * (shift - width // 2) + c - a + reach
        if 0 <= u < size:
            spread[shift, c, a, u] = 1
    rows = jnp.asarray(spread, kernel.dtype)
    wide = jnp.einsum("icau,jdbv,uvxy->ijcdxaby", rows, rows, kernel)
    return wide.reshape(width, width, 4 * channels, 4 * outputs)


def halve(x: Images) -> Pooled:
    """Max-pooling over 2 x 2 blocks; an odd last row or column is dropped."""
    batch, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
