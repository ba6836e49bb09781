"""The family of models: parameters from a key, logits from parameters."""

from abc import abstractmethod
from typing import ClassVar, TypeAlias

from jaxtyping import Array, Float, Int, Key, PyTree

from safari.registry import Noun

Params: TypeAlias = PyTree[Float[Array, "..."]]


class Model(Noun):
    """A classifier without its parameters. Subclass it to bring your own; its fields become keys.

    `side_by_side` says whether the clients of a round train as one batched program (small
    models) or one after another (models whose products fill the machine by themselves).

    Examples:
        >>> import jax, jax.numpy as jnp, safari
        >>> class Linear(safari.Model):
        ...     gain: float = 1.0
        ...     def init(self, key, shape, classes):
        ...         return {"weight": jnp.zeros((shape[0], classes))}
        ...     def apply(self, params, x):
        ...         return self.gain * x @ params["weight"]
        >>> Linear().apply(Linear().init(jax.random.key(0), (4,), 3), jnp.ones((2, 4))).shape
        (2, 3)
    """

    side_by_side: ClassVar[bool] = True

    @abstractmethod
    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        """Fresh parameters for samples of `shape`."""

    @abstractmethod
    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        """The logits of a batch."""

    def portable_apply(
        self, params: Params, x: Float[Array, "batch *shape"]
    ) -> Float[Array, "batch classes"]:
        """The same logits by operations that other runtimes know, for `safari export`."""
        return self.apply(params, x)

    def plain_sgd(
        self,
        params: Params,
        data: tuple[Array, Array],
        batches: tuple[Int[Array, "steps size"], Float[Array, "steps size"]],
        *,
        scale: Float[Array, ""],
        classes: int,
        rate: Float[Array, ""] | float,
        steps: Int[Array, ""] | int,
        precision: str,
    ) -> Params | None:
        """All steps of plain SGD in one kernel, or None where the model has none for this machine.

        Args:
            params: where SGD starts.
            data: all samples as they are stored, and their labels.
            batches: the sample numbers of each step's minibatch, and their weights.
            scale: the model sees a stored sample times this.
            classes: how many there are.
            rate: the step size.
            steps: of the minibatches, how many to use.
            precision: that of the products.
        """
        return None
