"""The family of models: parameters from a key, logits from parameters."""

from abc import abstractmethod
from typing import ClassVar, TypeAlias

import equinox as eqx
from jaxtyping import Array, Float, Key, PyTree

Params: TypeAlias = PyTree[Float[Array, "..."]]


class Model(eqx.Module):
    """A classifier without its parameters.

    `side_by_side`: whether the clients of a round train as one batched program (small
    models) or one after another (models whose products fill the machine by themselves).
    """

    side_by_side: ClassVar[bool] = True

    @abstractmethod
    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        """Fresh parameters for samples of `shape`."""

    @abstractmethod
    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        """The logits of a batch."""
