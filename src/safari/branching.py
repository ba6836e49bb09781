"""A choice between two computations, for one run or for many side by side."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

T = TypeVar("T")
_STACKED = ContextVar("stacked", default=False)


@contextmanager
def stacked_runs() -> Iterator[None]:
    """What is traced inside is for runs side by side, which may differ in every choice."""
    before = _STACKED.set(True)
    try:
        yield
    finally:
        _STACKED.reset(before)


def choose(condition: Bool[Array, ""], then: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """`then()` or `otherwise()`.

    Runs side by side compute both and take one each. JAX would do the same with a `cond`, but
    would copy all that the branches look at, the data set among it, once for every run.
    """
    if not _STACKED.get():
        return jax.lax.cond(condition, then, otherwise)
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), then(), otherwise())
