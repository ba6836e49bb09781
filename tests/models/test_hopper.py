"""Kernels for Hopper: their source on an emulated GPU, and where there is one, on a real one."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from safari.models import hopper
from safari.models.convolution import by_library, halve
from safari.models.hopper import build, layout
from safari.models.hopper.kernels import _kernel

EMULATOR = Path(__file__).parent / "emulator"
IMAGES, BLOCKS = 7, 2
"""So that a block of threads goes round its buffers in shared memory."""
MOST_SHARED_BYTES = 227 * 1024
LAYERS = {"first": hopper.FIRST, "second": hopper.SECOND}
on_gpu = pytest.mark.skipif(
    jax.default_backend() != "gpu" or not hopper._runs_here(), reason="needs one of NVIDIA's Hopper GPUs"
)


def plain(x, kernel, bias):
    return jax.nn.relu(halve(by_library(x, kernel)) + bias)


def given(layer, images=IMAGES):
    """Images, kernel, bias and a slope, all of which bfloat16 holds exactly."""
    (image, kernel), chance = LAYERS[layer], np.random.default_rng(0)
    pooled = (images, image[0] // 2, image[1] // 2, kernel[-1])
    shapes = (images, *image), kernel, kernel[-1:], pooled
    scales = 1, 1 / 8, 2, 1
    return [
        (scale * chance.standard_normal(shape)).astype(jnp.bfloat16)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def expected(x, kernel, bias, slope):
    """Values and slopes by the library, in float32."""
    exact = [np.asarray(each, np.float32) for each in (x, kernel, bias, slope)]
    with jax.default_matmul_precision("highest"):
        pooled, back = jax.vjp(plain, *exact[:3])
        return pooled, *back(exact[3])


def off(found, wanted):
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def test_the_kernels_are_of_this_source():
    for name in build.KERNELS:
        assert _kernel(name)[0].startswith(build.stamp()), "the source has changed: make kernels"


def test_the_kernels_fit_the_shared_memory():
    assert all(0 < _kernel(name)[1] <= MOST_SHARED_BYTES for name in build.KERNELS)


def test_elsewhere_the_library_serves():
    x, kernel, *_ = given("second")
    assert not hopper.serves(x.astype(np.float32), kernel.astype(np.float32))
    assert not hopper.serves(x[:, :8], kernel)
    assert hopper.serves(x, kernel) == (jax.default_backend() == "gpu" and hopper._runs_here())


def test_weights_of_blocks_stand_where_their_sums_are_read():
    numbers = np.arange(1, 5 * 5 * 3 * 32 + 1, dtype=np.float32).reshape(5, 5, 3, 32)
    placed = layout.first_weights(jnp.asarray(numbers))
    sums = placed.transpose(0, 1, 3, 2).reshape(1, 9, 16, 128)
    np.testing.assert_array_equal(layout.first_slope(sums), 4 * numbers)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """A function that runs a kernel: grid, arrays."""
    compiler, folder = shutil.which("c++"), tmp_path_factory.mktemp("emulated")
    if compiler is None:
        pytest.skip("needs a C++ compiler")

    def call(name, grid, *arrays):
        text = '#include "emulate.h"\n#include "convolution.cu"\n#include "launch.h"\n'
        (folder / f"{name}.cc").write_text(f"{text}{build.KERNELS[name]}\nRUN({name})\n")
        options = ["-std=c++17", "-O3", "-w", "-shared", "-fPIC", "-pthread"]
        options += [f"-I{headers}" for headers in (EMULATOR, build.HERE)]
        command = [compiler, *options, "-o", folder / f"{name}.so", folder / f"{name}.cc"]
        subprocess.run(command, check=True)
        library = ctypes.CDLL(folder / f"{name}.so")
        arrays = [np.ascontiguousarray(array) for array in (np.int32([IMAGES]), *arrays[:-1])] + [*arrays[-1]]
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        library.run(grid, pointers)
        return arrays[-1]

    return call


@pytest.mark.parametrize("layer", LAYERS)
def test_the_source_does_what_the_library_does(emulated, layer):
    x, kernel, bias, slope = given(layer)
    pooled, of_images, of_kernel, of_bias = expected(x, kernel, bias, slope)
    images = layout.blocks(jnp.asarray(x)) if layer == "first" else x
    weights = getattr(layout, f"{layer}_weights")(jnp.asarray(kernel))
    number = 1 + (layer == "second")
    found, place = np.full(pooled.shape, 77, jnp.bfloat16), np.full(pooled.shape, 99, np.uint8)
    emulated(f"forward{number}", BLOCKS, images, weights, bias.astype(np.float32), (found, place))
    assert off(found, pooled) < 3e-3
    cut = (place == hopper.NOWHERE) == (pooled == 0)
    assert cut.mean() > 0.999
    assert off(np.where(place == hopper.NOWHERE, 0, slope.astype(np.float32)).sum((0, 1, 2)), of_bias) < 1e-2

    shape = (BLOCKS, 9, 16, 128) if layer == "first" else (BLOCKS, 25, 32, 64)
    sums = np.full(shape, np.nan, np.float32)
    emulated(f"kernel{number}", BLOCKS * number, images, slope, place, (sums,))
    assert off(getattr(layout, f"{layer}_slope")(jnp.asarray(sums)), of_kernel) < 2e-3
    if layer == "second":
        back = np.full(x.shape, 77, jnp.bfloat16)
        emulated("backward2", BLOCKS, slope, place, layout.turned_weights(jnp.asarray(kernel)), (back,))
        assert off(back, of_images) < 3e-3


@on_gpu
@pytest.mark.parametrize("images", [1, 131, 500])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_gpu_does_what_the_library_does(layer, images):
    *these, slope = given(layer, images)
    pooled, back = jax.jit(lambda *these: (hopper.layer(*these), jax.vjp(hopper.layer, *these)[1](slope)))(
        *these
    )
    for found, wanted in zip((pooled, *back), expected(*these, slope), strict=True):
        assert off(found, wanted) < 3e-2


@on_gpu
def test_a_gpu_gives_the_same_bits_again():
    *these, slope = given("second", 500)
    slopes = jax.jit(lambda *these: jax.vjp(hopper.layer, *these)[1](slope))
    for one, other in zip(slopes(*these), slopes(*these), strict=True):
        np.testing.assert_array_equal(one, other)


@on_gpu
@pytest.mark.parametrize("layer", LAYERS)
def test_a_gpu_knows_curvature_too(layer):
    *these, _ = given(layer, 20)
    direction = [np.asarray(each, np.float32) for each in given(layer, 20)[:3]]

    def curved(way, dtype):
        def slope(*these):
            return jax.grad(lambda *these: (way(*these).astype(jnp.float32) ** 2).mean(), (0, 1, 2))(*these)

        point = [each.astype(dtype) for each in these]
        return jax.vjp(slope, *point)[1](tuple(each.astype(dtype) for each in direction))

    for found, wanted in zip(curved(hopper.layer, jnp.bfloat16), curved(plain, jnp.float32), strict=True):
        assert off(found, wanted) < 0.05
