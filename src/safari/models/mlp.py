"""Multi-layer perceptron."""

import math

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from safari.errors import check, check_count
from safari.models.base import Model, Params
from safari.models.dense import dense, init_dense

MOST_LAYERS = 1000


class MLP(Model):
    """Dense layers with ReLU between them.

    Args:
        hidden: the widths of the inner layers.

    Examples:
        >>> import jax, safari
        >>> safari.MLP(hidden=(32,)).init(jax.random.key(0), (8, 8, 1), 10)["dense0"]["weight"].shape
        (64, 32)
    """

    hidden: tuple[int, ...] = eqx.field(default=(200,), converter=tuple)

    def __check_init__(self) -> None:
        check(
            len(self.hidden) <= MOST_LAYERS,
            "hidden",
            self.hidden,
            f"must be {MOST_LAYERS} layers at the most",
        )
        for width in self.hidden:
            check_count("hidden", width)

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        widths = (math.prod(shape), *self.hidden, classes)
        return {
            f"dense{layer}": init_dense(jax.random.fold_in(key, layer), *widths[layer : layer + 2])
            for layer in range(len(widths) - 1)
        }

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        x = x.reshape(x.shape[0], -1)
        for layer in range(len(self.hidden)):
            x = jax.nn.relu(dense(params[f"dense{layer}"], x))
        return dense(params[f"dense{len(self.hidden)}"], x)
