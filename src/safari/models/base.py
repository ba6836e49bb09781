"""The family of models: parameters from a key, logits from parameters."""

from abc import abstractmethod
from typing import ClassVar, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from safari.errors import check
from safari.registry import Noun

Params: TypeAlias = PyTree[Float[Array, "..."]]


class Model(Noun):
    """A classifier without its parameters. Subclass it to bring your own; its fields become keys.

    `side_by_side` says whether the clients of a round train as one batched program (small
    models) or one after another (models whose products fill the machine by themselves).
    `cross_entropy` says whether `loss` is the cross entropy, which `plain_sgd` takes for granted: a
    model with a loss of its own sets it to False.

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
    cross_entropy: ClassVar[bool] = True

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

    def loss(
        self, logits: Float[Array, "batch classes"], target: Float[Array, "batch classes"]
    ) -> Float[Array, " batch"]:
        """What training makes small, sample by sample; the cross entropy unless a model says otherwise.

        Scores are in cross entropy whatever this is. Who replaces it sets `cross_entropy = False`.

        Args:
            logits: what the model says of a batch.
            target: the true classes, one-hot.
        """
        return cross_entropy(logits, target)

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


def cross_entropy(
    logits: Float[Array, "batch classes"], target: Float[Array, "batch classes"]
) -> Float[Array, " batch"]:
    """Of each sample; `target` is one-hot."""
    return jax.nn.logsumexp(logits, axis=1) - jnp.sum(logits * target, axis=1)


def check_loss(model: Model, classes: int) -> None:
    """Refuse a loss that is no cross entropy of a model that says it is: a kernel would not compute it."""
    samples = 3
    logits = jnp.linspace(-2.0, 3.0, samples * classes).reshape(samples, classes)
    target = jax.nn.one_hot(jnp.arange(samples) % classes, classes)
    found = model.loss(logits, target)
    check(getattr(found, "shape", None) == (samples,), "model", model, "loss must give a number a sample")
    same = bool(jnp.allclose(found, cross_entropy(logits, target), rtol=1e-4))
    hint = "its loss is not the cross entropy: set cross_entropy = False in its class"
    check(same or not model.cross_entropy, "model", type(model).__name__, hint)
