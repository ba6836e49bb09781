"""What a run takes at the least: a run that cannot fit is refused before anything is computed for it."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from safari.algorithms import ClientAlgorithm
from safari.algorithms.server_sgd import ServerSGD
from safari.devices import memory
from safari.engine.run import Run, blank_record, initial_params, start
from safari.errors import InputError

INDEX_AND_WEIGHT = 8
"""Bytes for each sample of a minibatch in a schedule."""


def check_fits(run: Run) -> None:
    """Refuse a run that needs more memory than there is, whatever is reused; nothing is computed for it.

    Raises:
        InputError: with the key to blame, the estimate and what there is.
    """
    there = memory()
    needs = list(_needs(run))
    if sum(size for *_, size in needs) > there:
        key, value, what, size = max(needs, key=lambda need: need[-1])
        raise InputError(key, value, f"{what} would take {_words(size)}; {_words(there)} of memory are free")


def _needs(run: Run) -> Iterator[tuple[str, Any, str, int]]:
    """The key to blame for it, its value, what it is, and its bytes."""
    params = jax.eval_shape(lambda: initial_params(run))
    yield "model", run.task.model, "parameters and a gradient", 2 * bytes_of(params)
    carry = jax.eval_shape(lambda: start(run))
    remembered = bytes_of(carry.state) - bytes_of(params)
    yield "algorithm", run.algorithm, "what server and clients remember", max(0, remembered)
    pattern = run.roster.availability
    yield "participation.availability", pattern, "its state", bytes_of(carry.availability)
    yield from _schedules(run)
    record = jax.eval_shape(lambda: blank_record(run))
    yield "train.rounds", run.rounds, "the history", run.rounds * bytes_of(record)


def _schedules(run: Run) -> Iterator[tuple[str, Any, str, int]]:
    """The minibatches of a round: which samples each holds, and their weights."""
    federation, what = run.task.federation, "the minibatches of a round"
    for part in run.algorithm.parts():
        if isinstance(part, ClientAlgorithm):
            size = int(part.steps(federation.largest)) * min(part.batch_size, federation.largest)
            name = "local_epochs" if part.local_steps is None else "local_steps"
            yield f"algorithm.clients.{name}", getattr(part, name), what, INDEX_AND_WEIGHT * size
        elif isinstance(part, ServerSGD) and isinstance(part.steps, int):
            size = part.steps * min(part.batch_size, federation.server_most)
            yield "algorithm.server.steps", part.steps, what, INDEX_AND_WEIGHT * size


def bytes_of(tree: PyTree[Any]) -> int:
    """Of the arrays of a tree, or of their shapes; random keys are not counted."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def _words(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
