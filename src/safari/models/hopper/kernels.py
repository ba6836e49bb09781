"""The kernels and how they are run: XLA hands their PTX to the driver."""

import functools
import re
from importlib.resources import files
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from safari.devices import multiprocessors

CALL = "__gpu$xla.gpu.ptx"
THREADS = 384


def call(name: str, blocks: int, results: Any, *arrays: Array) -> Any:
    """Run a kernel on as many blocks of threads. Each takes every so manyth of the images."""
    code, shared = _kernel(name)
    sizes = {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": THREADS, "block_y": 1, "block_z": 1}
    settings = {key: np.int32(value) for key, value in {**sizes, "shared_mem_bytes": shared}.items()}
    run = jax.ffi.ffi_call(CALL, results, vmap_method="sequential")
    images = jnp.full(1, len(arrays[0]), jnp.int32)
    return run(images, *arrays, name=name, kernel_type="ptx", kernel_data=code, **settings)


def blocks_at_once() -> int:
    """As many as the GPU has processors, an even number."""
    return multiprocessors() // 2 * 2


@functools.lru_cache(maxsize=8)
def _kernel(name: str) -> tuple[str, int]:
    """PTX of a kernel, and the bytes of shared memory that it says it needs."""
    code = (files(__package__) / f"{name}.ptx").read_text()
    (shared,) = re.findall(r"shared_bytes = (\d+);", code)
    return code, int(shared)
