"""Kernels for Hopper: their source on an emulated GPU, and where there is one, on a real one."""

import ctypes
import functools
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
    """Images, kernel, bias and a cotangent, all of which bfloat16 holds exactly."""
    (image, kernel), chance = LAYERS[layer], np.random.default_rng(0)
    pooled = (images, image[0] // 2, image[1] // 2, kernel[-1])
    shapes = (images, *image), kernel, kernel[-1:], pooled
    scales = 1, 1 / 8, 2, 1
    return [
        (scale * chance.standard_normal(shape)).astype(jnp.bfloat16)
        for shape, scale in zip(shapes, scales, strict=True)
    ]


def expected(x, kernel, bias, cotangent):
    """Values and gradients by the library, in float32."""
    exact = [np.asarray(each, np.float32) for each in (x, kernel, bias, cotangent)]
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
    np.testing.assert_array_equal(layout.first_gradient(sums), 4 * numbers)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    """A function that runs a kernel on an emulated GPU, as `call` does on a real one."""
    compiler, folder = shutil.which("c++"), tmp_path_factory.mktemp("emulated")
    if compiler is None:
        pytest.skip("needs a C++ compiler")

    @functools.cache
    def library(name):
        text = '#include "emulate.h"\n#include "convolution.cu"\n#include "launch.h"\n'
        (folder / f"{name}.cc").write_text(f"{text}{build.KERNELS[name]}\nRUN({name})\n")
        options = ["-std=c++17", "-O3", "-w", "-shared", "-fPIC", "-pthread"]
        options += [f"-I{headers}" for headers in (EMULATOR, build.HERE)]
        command = [compiler, *options, "-o", folder / f"{name}.so", folder / f"{name}.cc"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(folder / f"{name}.so")

    def run(name, grid, results, *arrays):
        images = np.int32([len(arrays[0])])
        inputs = [np.ascontiguousarray(array) for array in (images, *arrays)]
        outputs = [np.full(result.shape, 77, result.dtype) for result in jax.tree.leaves(results)]
        pointers = [array.ctypes.data for array in (*inputs, *outputs)]
        library(name).run(grid, (ctypes.c_void_p * len(pointers))(*pointers))
        return jax.tree.unflatten(jax.tree.structure(results), outputs)

    def call(name, grid, results, *arrays):
        return jax.pure_callback(functools.partial(run, name, grid, results), results, *arrays)

    return call


def gradients_and_values(*these, cotangent):
    pooled, back = jax.vjp(hopper.layer, *these)
    return pooled, *back(cotangent)


def curvature(way, dtype, point, direction):
    def gradients(*these):
        return jax.grad(lambda *these: (way(*these).astype(jnp.float32) ** 2).mean(), (0, 1, 2))(*these)

    def on(direction):
        return jax.vjp(gradients, *(jnp.asarray(each, dtype) for each in point))[1](direction)

    return jax.jit(on)(tuple(jnp.asarray(each, dtype) for each in direction))


@pytest.mark.parametrize("layer", LAYERS)
def test_the_source_does_what_the_library_does(emulated, layer, monkeypatch):
    monkeypatch.setattr(hopper, "call", emulated)
    monkeypatch.setattr(hopper, "blocks_at_once", lambda: BLOCKS)
    *these, cotangent = given(layer)
    found = jax.jit(gradients_and_values)(*these, cotangent=cotangent)
    for one, wanted in zip(found, expected(*these, cotangent), strict=True):
        assert off(one, wanted) < 1e-2


def test_the_source_knows_curvature_too(emulated, monkeypatch):
    monkeypatch.setattr(hopper, "call", emulated)
    monkeypatch.setattr(hopper, "blocks_at_once", lambda: BLOCKS)
    check_curvature("second", images=1)


def check_curvature(layer, images):
    *point, _ = given(layer, images)
    ours, library = ((hopper.layer, jnp.bfloat16), (plain, jnp.float32))
    for one, wanted in zip(*(curvature(*way, point, point) for way in (ours, library)), strict=True):
        assert off(one, wanted) < 0.05


@on_gpu
@pytest.mark.parametrize("images", [1, 131, 500])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_gpu_does_what_the_library_does(layer, images):
    *these, cotangent = given(layer, images)
    found = jax.jit(gradients_and_values)(*these, cotangent=cotangent)
    for one, wanted in zip(found, expected(*these, cotangent), strict=True):
        assert off(one, wanted) < 1e-2


@on_gpu
def test_a_gpu_gives_the_same_bits_again():
    *these, cotangent = given("second", 500)
    gradients = jax.jit(gradients_and_values)
    for one, other in zip(
        gradients(*these, cotangent=cotangent), gradients(*these, cotangent=cotangent), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@on_gpu
@pytest.mark.parametrize("layer", LAYERS)
def test_a_gpu_knows_curvature_too(layer):
    check_curvature(layer, images=20)
