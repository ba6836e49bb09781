"""The schedules that have a name; two of them are optax's."""

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from safari.algorithms.schedule import Schedule
from safari.errors import check, check_fraction


class Cosine(Schedule):
    """From 1 down to `end` along half a cosine (optax.cosine_decay_schedule).

    Args:
        end: the factor that the rates would have after the last round.

    Examples:
        >>> import safari
        >>> round(float(safari.Cosine(end=0.1).factor(50, rounds=100)), 3)
        0.55
    """

    end: float = 0.0

    def __check_init__(self) -> None:
        check_fraction("end", self.end)

    def factor(self, number: Int[Array, ""], rounds: int) -> Float[Array, ""]:
        return optax.cosine_decay_schedule(1.0, rounds, self.end)(number)


class Linear(Schedule):
    """From 1 to `end` in equal steps (optax.linear_schedule).

    Args:
        end: the factor that the rates would have after the last round.

    Examples:
        >>> import safari
        >>> round(float(safari.Linear(end=0.1).factor(50, rounds=100)), 3)
        0.55
    """

    end: float = 0.0

    def __check_init__(self) -> None:
        check_fraction("end", self.end)

    def factor(self, number: Int[Array, ""], rounds: int) -> Float[Array, ""]:
        return optax.linear_schedule(1.0, self.end, rounds)(number)


class Exponential(Schedule):
    """Every round the rates are multiplied by `decay`.

    Args:
        decay: the factor from one round to the next.

    Examples:
        >>> import safari
        >>> round(float(safari.Exponential(decay=0.9).factor(50, rounds=100)), 3)
        0.005
    """

    decay: float = 0.99

    def __check_init__(self) -> None:
        check(0.0 < self.decay <= 1.0, "decay", self.decay, "must be above 0 and at most 1")

    def factor(self, number: Int[Array, ""], rounds: int) -> Float[Array, ""]:
        return jnp.asarray(self.decay, jnp.float32) ** number
