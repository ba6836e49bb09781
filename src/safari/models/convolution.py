"""A convolution followed by 2 x 2 max-pooling, lowered as each platform likes it.

Inside a loop on a CPU, XLA's own convolution is many times slower than matrix products of
patches, and Winograd's of tiles are faster still where there are channels enough. Images of
few channels keep matrix units and vector registers idle: there the four pixels of a pooling
block become channels, and the four outputs that are pooled come out side by side.
Images are (batch, height, width, channels).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from safari.models.winograd import LARGEST_KERNEL, convolve_tiles

Images = Float[Array, "batch height width channels"]
Kernel = Float[Array, "rows columns channels outputs"]
Convolved = Float[Array, "batch height width outputs"]
Pooled = Float[Array, "batch half_height half_width outputs"]

LEAST_BLOCKED_KERNEL = 5
"""Blocks of 2 x 2 spread a kernel of 5 over 6 pixels (1.4 times the work), one of 3 over 6 as well."""
LEAST_TILED_CHANNELS = 16


def convolve_and_halve(x: Images, kernel: Kernel) -> Pooled:
    """Convolve with zero padding that keeps height and width, then take 2 x 2 maxima.

    An odd last row or column is dropped.
    """
    return jax.lax.platform_dependent(x, kernel, cpu=on_cpu, default=on_gpu)


def on_cpu(x: Images, kernel: Kernel) -> Pooled:
    """By Winograd's products where channels make them worth their transforms, else by patches."""
    size, channels = kernel.shape[0], kernel.shape[2]
    fits = _is_square(kernel) and 3 <= size <= LARGEST_KERNEL and x.dtype in (jnp.float32, jnp.float64)
    if fits and channels >= LEAST_TILED_CHANNELS:
        return by_tiles(x, kernel)
    return by_blocks(x, kernel, by_patches) if _can_block(x, kernel) else halve(by_patches(x, kernel))


def on_gpu(x: Images, kernel: Kernel) -> Pooled:
    """By the library, over blocks where that is possible.

    Matrix units want the channels of a block, four times those of a pixel, to be a multiple of
    eight: an odd number gets one more, which is empty.
    """
    if not _can_block(x, kernel):
        return halve(by_library(x, kernel))
    empty, none = (0, x.shape[3] % 2), (0, 0)
    x, kernel = jnp.pad(x, (none, none, none, empty)), jnp.pad(kernel, (none, none, empty, none))
    return by_blocks(x, kernel, by_library)


def _is_square(kernel: Kernel) -> bool:
    return kernel.shape[0] == kernel.shape[1]


def _can_block(x: Images, kernel: Kernel) -> bool:
    whole = x.shape[1] % 2 == 0 and x.shape[2] % 2 == 0
    size = kernel.shape[0]
    return whole and _is_square(kernel) and size % 2 == 1 and size >= LEAST_BLOCKED_KERNEL


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


def by_tiles(x: Images, kernel: Kernel) -> Pooled:
    """Convolution by Winograd's products, whose tiles are pooled where they are."""
    tiles = convolve_tiles(x, kernel)
    rows, columns, batch, down, across, outputs = tiles.shape
    pooled = tiles.reshape(rows // 2, 2, columns // 2, 2, batch, down, across, outputs).max(axis=(1, 3))
    pooled = pooled.transpose(2, 3, 0, 4, 1, 5).reshape(
        batch, down * rows // 2, across * columns // 2, outputs
    )
    return pooled[:, : x.shape[1] // 2, : x.shape[2] // 2]


def by_blocks(x: Images, kernel: Kernel, convolve: Callable[..., Convolved]) -> Pooled:
    """Convolution and pooling over images of blocks of 2 x 2 pixels."""
    batch, height, width, channels = x.shape
    outputs = kernel.shape[-1]
    blocks = x.reshape(batch, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    four = convolve(blocks.reshape(batch, height // 2, width // 2, 4 * channels), _block_kernel(kernel))
    return largest_of_four(four.reshape(batch, height // 2, width // 2, 4, outputs))


def largest_of_four(x: Float[Array, "*many 4 outputs"]) -> Float[Array, "*many outputs"]:
    """The maximum over the last axis but one. Its slope goes to the first that is largest.

    Backwards nothing but the place of the maximum is needed: far less than the four values,
    which the slope of `max` compares once more.
    """
    a, b, c, d = (jax.lax.stop_gradient(x[..., place, :]) for place in range(4))
    left, right = jnp.maximum(a, b), jnp.maximum(c, d)
    place = jnp.where(right > left, 2 + (d > c), (b > a).astype(jnp.int32)).astype(jnp.int8)
    chosen = place[..., None, :] == jnp.arange(4, dtype=jnp.int8)[:, None]
    return jnp.where(chosen, x, 0).sum(axis=-2)


def _block_kernel(kernel: Kernel) -> Float[Array, "block_rows block_columns inputs outputs"]:
    """The kernel that does to blocks what `kernel` does to pixels: all four outputs of a block."""
    size, _, channels, outputs = kernel.shape
    spread = jnp.asarray(_spread(size), kernel.dtype)
    many = jnp.einsum("icau,jdbv,uvxy->ijcdxaby", spread, spread, kernel)
    return many.reshape(len(spread), len(spread), 4 * channels, 4 * outputs)


def _spread(size: int) -> np.ndarray:
    """Which tap of a kernel leads from pixel c of a block some way off to pixel a: (away, c, a, tap).

    Output pixel a sees input pixel c of the block `away` through tap `2 * away + c - a + reach`,
    where there is one. The spread is a product with constant zeros and ones.
    """
    reach = size // 2
    most = -(-reach // 2)
    spread = np.zeros((2 * most + 1, 2, 2, size), np.float32)
    for away, c, a in np.ndindex(2 * most + 1, 2, 2):
        tap = 2 * (away - most) + c - a + reach
        if 0 <= tap < size:
            spread[away, c, a, tap] = 1
    return spread


def halve(x: Images) -> Pooled:
    """Max-pooling over 2 x 2 blocks; an odd last row or column is dropped."""
    batch, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
