"""A convolution followed by 2 x 2 max-pooling, lowered as each platform likes it.

Inside a loop on a CPU, XLA's own convolution is many times slower than matrix products of
patches, and Winograd's of tiles are faster still where there are channels enough. Images of
few channels keep matrix units and vector registers idle: there the four pixels of a pooling
block become channels, and the four outputs that are pooled come out side by side.
Images are (batch, height, width, channels).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from safari.models.winograd import LARGEST_KERNEL, convolve_tiles, kernel_at_points

Images = Float[Array, "batch height width channels"]
Kernel = Float[Array, "rows columns channels outputs"]
Convolved = Float[Array, "batch height width outputs"]
Pooled = Float[Array, "batch half_height half_width outputs"]

LEAST_BLOCKED_KERNEL = 5
"""Blocks of 2 x 2 spread a kernel of 5 over 6 pixels (1.4 times the work), one of 3 over 6 as well."""
LEAST_TILED_CHANNELS = 16
BLOCKED_STRIP, TILED_STRIP, MOST_STRIPS = 16, 32, 8
"""Images that go through a layer at once on a CPU; each strip is compiled, so there are few."""


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
    if not _can_block(x, kernel):
        return halve(by_patches(x, kernel))
    return in_strips(lambda strip: by_blocks(strip, kernel, by_patches), x, BLOCKED_STRIP)


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
    kernels, size = kernel_at_points(kernel), kernel.shape[0]

    def pooled(x: Images) -> Pooled:
        tiles = convolve_tiles(x, kernels, size)
        rows, columns, batch, down, across, outputs = tiles.shape
        tiles = tiles.reshape(rows // 2, 2, columns // 2, 2, batch, down, across, outputs)
        halves = largest(tiles, 1, 3).transpose(2, 3, 0, 4, 1, 5)
        halves = halves.reshape(batch, down * rows // 2, across * columns // 2, outputs)
        return halves[:, : x.shape[1] // 2, : x.shape[2] // 2]

    return in_strips(pooled, x, TILED_STRIP)


def in_strips(way: Callable[[Images], Pooled], x: Images, size: int) -> Pooled:
    """A few images at a time: what is made of them on the way stays in the caches."""
    size = max(size, -(-len(x) // MOST_STRIPS))
    return jnp.concatenate([way(x[start : start + size]) for start in range(0, len(x), size)])


def by_blocks(x: Images, kernel: Kernel, convolve: Callable[..., Convolved]) -> Pooled:
    """Convolution and pooling over images of blocks of 2 x 2 pixels."""
    batch, height, width, channels = x.shape
    half, outputs = (batch, height // 2, width // 2), kernel.shape[-1]
    blocks = x.reshape(batch, height // 2, 2, width // 2, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    four = convolve(blocks.reshape(*half, 4 * channels), block_kernel(kernel))
    return largest(four.reshape(*half, 2, 2, outputs), 3, 4)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def largest(x: Float[Array, "*many"], down: int, across: int) -> Float[Array, "*fewer"]:
    """The maximum over two axes of length two, `down` before `across`. Its gradient goes to the first.

    Backwards nothing but the place of the maximum is needed: far less than the four values,
    which the gradient of `max` compares once more.
    """
    return _largest_and_place(x, down, across)[0]


def _largest_and_place(x: Array, down: int, across: int) -> tuple[Array, Array]:
    above, below = (jax.lax.index_in_dim(x, i, down, keepdims=False) for i in (0, 1))
    (a, b), (c, d) = (
        [jax.lax.index_in_dim(row, j, across - 1, keepdims=False) for j in (0, 1)] for row in (above, below)
    )
    left, right = jnp.maximum(a, b), jnp.maximum(c, d)
    place = jnp.where(right > left, 2 + (d > c), (b > a).astype(jnp.int32)).astype(jnp.int8)
    return jnp.maximum(left, right), place


def _gradient_of_largest(down: int, across: int, place: Array, cotangent: Array) -> tuple[Array]:
    a, b, c, d = (jnp.where(place == corner, cotangent, 0) for corner in range(4))
    return (jnp.stack([jnp.stack([a, b], across - 1), jnp.stack([c, d], across - 1)], down),)


largest.defvjp(_largest_and_place, _gradient_of_largest)


def block_kernel(kernel: Kernel) -> Float[Array, "block_rows block_columns inputs outputs"]:
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
    return largest(x.reshape(batch, height // 2, 2, width // 2, 2, channels), 2, 4)
