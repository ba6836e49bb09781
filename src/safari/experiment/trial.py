"""Classes of the user's own, tried before anything is written: whatever is wrong with them is bad input."""

from collections.abc import Callable

import jax
import numpy as np

from safari.engine import Run, Training
from safari.engine.run import one_round, start
from safari.errors import InputError
from safari.registry import reason

_PASSED: set[tuple[str, ...]] = set()
"""Names that have been tried in this process: a sweep asks for the same ones hundreds of times."""


def try_own_classes(own: dict[str, str], prepared: Callable[[], Run]) -> Run:
    """The run that `prepared` makes, once one round of it has been tried.

    Args:
        own: the keys of the spec that name the user's classes, and the names.
        prepared: makes the run.

    Raises:
        InputError: if the run cannot be made or traced, or its first round leaves the finite numbers.
    """
    try:
        run = prepared()
        names = tuple(own.values())
        if names in _PASSED:
            return run
        jax.eval_shape(lambda: one_round(run, start(run), jax.numpy.int32(0)))
        training = Training(run, devices=jax.devices()[:1])
        training.advance(most=1)
    except InputError:
        raise
    except Exception as error:  # a user's class may fail in any way
        raise _failure(own, f"fails in the first round ({reason(error)})") from None
    for leaf in jax.tree.leaves(training.carry.state.params):
        if not np.isfinite(np.asarray(leaf)).all():
            raise _failure(own, "gives parameters that are not finite in the first round")
    _PASSED.add(names)
    return run


def _failure(own: dict[str, str], what: str) -> InputError:
    """Where several classes are the user's own, any of them may be the cause."""
    keys, names = " and ".join(own), ", ".join(dict.fromkeys(own.values()))
    return InputError(keys, names, what)
