"""Compiled programs that outlive a process: JAX's cache on disk."""

import os
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from safari.data.sources.download import cache_folder

ZSTD = b"\x28\xb5\x2f\xfd"
"""How a program begins that was compressed by what JAX takes instead of zlib where it is installed."""


def keep_compiled_programs(least_seconds: float = 0.3) -> None:
    """Let JAX keep programs that took so long to compile, beside fetched data, unless it is told where.

    A kept program that cannot be read is thrown away, and one that cannot be kept is not: neither is a
    user's concern, so JAX's warnings about them are not shown.
    """
    for what in ("reading", "writing"):
        warnings.filterwarnings("always", f"Error {what} persistent compilation cache entry")
    if getattr(warnings.showwarning, "__module__", "") != __name__:
        warnings.showwarning = _without_the_cache(warnings.showwarning)
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)


def _without_the_cache(show: Callable[..., Any]) -> Callable[..., Any]:
    """`show` a warning, unless it is about kept programs."""

    def shown(message: Warning | str, *rest: Any, **more: Any) -> None:
        if str(message).startswith("Error reading persistent compilation cache"):
            throw_unreadable_away()
        elif not str(message).startswith("Error writing persistent compilation cache"):
            show(message, *rest, **more)

    return shown


def throw_unreadable_away() -> None:
    """Remove kept programs that are damaged: JAX replaces none that is there."""
    kept: list[Path] = []
    with suppress(OSError):  # of a folder that may not be read, nothing is used and nothing is removed
        kept += kept_programs().glob("*-cache")
    for file in kept:
        with suppress(OSError):
            content = file.read_bytes()
            try:
                zlib.decompress(content)
            except zlib.error:
                if not content.startswith(ZSTD):
                    file.unlink()


def kept_programs() -> Path:
    """The folder that JAX keeps programs in."""
    return Path(getattr(jax.config, "jax_compilation_cache_dir", None) or os.devnull)
