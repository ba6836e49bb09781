"""Convolution with a quarter of the products or less, for float32 on CPUs.

An image is cut into tiles of 4 x 4 output pixels. A tile and the kernel are each turned into
values at as many points; multiplied point by point, and turned back, they are the convolved
tile: 64 products of numbers for 16 outputs of a 5 x 5 kernel, which plainly take 400
(Winograd 1980; for networks, Lavin and Gray 2016). In float32 the result is about a digit less
exact than the plain sum, which is far below the noise of minibatches.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

TILE = 4
POINTS = [Fraction(0), *(sign * Fraction(p) for p in ("1", "2", "1/2") for sign in (1, -1))]
"""With infinity, eight points: enough for kernels of up to five rows. Small powers keep rounding small."""
LARGEST_KERNEL = len(POINTS) + 2 - TILE


def kernel_at_points(
    kernel: Float[Array, "size size channels outputs"],
) -> Float[Array, "points channels outputs"]:
    """The kernel's values at the points, which `convolve_tiles` takes."""
    size, _, channels, outputs = kernel.shape
    turned = kernel.transpose(1, 0, 2, 3).reshape(size * size, channels * outputs)
    _, kernel_in, _ = transforms(size)
    return (_both_ways(kernel_in, kernel.dtype) @ turned).reshape(-1, channels, outputs)


def convolve_tiles(
    x: Float[Array, "batch height width channels"],
    kernels: Float[Array, "points channels outputs"],
    size: int,
) -> Float[Array, "tile tile batch down across outputs"]:
    """Convolve with zero padding that keeps height and width; the outputs of each tile come first.

    Where height or width is no multiple of the tile, the last tiles reach over the edge.
    """
    batch, height, width, channels = x.shape
    down, across, points = -(-height // TILE), -(-width // TILE), TILE + size - 1
    before = (size - 1) // 2
    pads = [
        (before, TILE * many + size - 1 - before - length)
        for many, length in zip((down, across), (height, width), strict=True)
    ]
    x = jnp.pad(x, ((0, 0), *pads, (0, 0)))
    back, _, tile_in = transforms(size)
    tiles = _mix(tile_in, [x[:, i : i + TILE * (down - 1) + 1 : TILE] for i in range(points)])
    tiles = _mix(tile_in, [tiles[..., j : j + TILE * (across - 1) + 1 : TILE, :] for j in range(points)])
    tiles = tiles.reshape(points * points, batch * down * across, channels)
    products = jax.lax.dot_general(tiles, kernels, (((2,), (1,)), ((0,), (0,))))
    convolved = _both_ways(back, x.dtype) @ products.reshape(points * points, -1)
    return convolved.reshape(TILE, TILE, batch, down, across, -1).swapaxes(0, 1)


@lru_cache(maxsize=16)
def transforms(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three matrices of a kernel of `size` taps: out of the points, kernel and tile into them.

    y = out @ ((kernel_in @ k) * (tile_in @ x)) is the correlation of the taps k with x. It is the
    transpose of a product of two polynomials, which are known by their values at the points.
    Each row of `tile_in` adds up to 1 in absolute value, for the sake of rounding.
    """
    many = TILE + size - 1
    solved = np.array(_inverse(_powers(many, many)), float).T
    scale = np.abs(solved).sum(axis=1, keepdims=True)
    out, kernel_in = (np.array(_powers(many, columns), float) for columns in (TILE, size))
    return out.T, kernel_in * scale, solved / scale


def _powers(many: int, columns: int) -> list[list[Fraction]]:
    """The powers of each point; those of infinity are the last coefficient alone."""
    infinity = [Fraction(int(power == columns - 1)) for power in range(columns)]
    return [*([point**power for power in range(columns)] for point in POINTS[: many - 1]), infinity]


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """By Gauss and Jordan, exactly."""
    many = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(many))] for i, row in enumerate(matrix)]
    for i in range(many):
        first = next(j for j in range(i, many) if rows[j][i])
        rows[i], rows[first] = rows[first], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(many):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[many:] for row in rows]


def _mix(matrix: np.ndarray, parts: Sequence[Array]) -> Array:
    """Each row of the matrix as a weighted sum of `parts`, stacked."""
    return jnp.stack(
        [
            reduce(jnp.add, [float(weight) * part for weight, part in zip(row, parts, strict=True) if weight])
            for row in matrix
        ]
    )


def _both_ways(matrix: np.ndarray, dtype: jnp.dtype) -> Array:
    """What does along rows and columns at once what `matrix` does along one of them."""
    return jnp.asarray(np.kron(matrix, matrix), dtype)
