"""Compiled programs that outlive a process: JAX's cache on disk."""

import os

import jax

from safari.data.sources.download import cache_folder


def keep_compiled_programs(least_seconds: float = 0.3) -> None:
    """Let JAX keep programs that took so long to compile, beside fetched data, unless it is told where."""
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
