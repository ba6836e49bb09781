"""The convolutional network of the CIFAR-10 experiments."""

from collections.abc import Callable
from functools import reduce
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from safari.errors import check, check_count
from safari.models import hopper
from safari.models.base import Model, Params
from safari.models.convolution import by_library, convolve_and_halve
from safari.models.dense import dense, init_dense, init_layer


class CNN(Model):
    """5 x 5 convolutions of 32 and 64 channels, each pooled 2 x 2, then 512 dense units.

    ReLU between layers.

    Args:
        channels: the channels of each convolution.
        kernel: the width and height of the convolutions' kernels.
        hidden: the width of the dense layer before the last.

    Examples:
        >>> import jax, safari
        >>> params = safari.CNN(channels=(8, 16), kernel=3).init(jax.random.key(0), (8, 8, 1), 10)
        >>> params["conv1"]["kernel"].shape
        (3, 3, 8, 16)
    """

    channels: tuple[int, ...] = eqx.field(default=(32, 64), converter=tuple)
    kernel: int = 5
    hidden: int = 512
    side_by_side: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check(bool(self.channels), "channels", self.channels, "needs at least one layer")
        for width in self.channels:
            check_count("channels", width)
        check_count("kernel", self.kernel)
        check_count("hidden", self.hidden)

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        check(
            len(shape) == 3,
            "name",
            "cnn",
            f"needs images (height, width, channels); these samples have shape {shape}",
        )
        height, width, inputs = shape
        check(
            self.kernel <= min(height, width), "kernel", self.kernel, f"larger than the images, {shape[:2]}"
        )
        params: Params = {}
        for layer, outputs in enumerate(self.channels):
            kernel = (self.kernel, self.kernel, inputs, outputs)
            fan_in = self.kernel * self.kernel * inputs
            params[f"conv{layer}"] = init_layer(jax.random.fold_in(key, layer), kernel, fan_in, "kernel")
            height, width, inputs = height // 2, width // 2, outputs
        check(
            height > 0 and width > 0, "channels", self.channels, f"too many layers for images of {shape[:2]}"
        )
        key = jax.random.fold_in(key, len(self.channels))
        params["dense0"] = init_dense(jax.random.fold_in(key, 0), height * width * inputs, self.hidden)
        params["dense1"] = init_dense(jax.random.fold_in(key, 1), self.hidden, classes)
        return params

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        return self._apply(pooled_layer, params, x)

    def portable_apply(
        self, params: Params, x: Float[Array, "batch *shape"]
    ) -> Float[Array, "batch classes"]:
        return self._apply(portable_layer, params, x)

    def _apply(
        self, layer: Callable[..., Array], params: Params, x: Float[Array, "batch *shape"]
    ) -> Float[Array, "batch classes"]:
        for number in range(len(self.channels)):
            conv = params[f"conv{number}"]
            x = layer(x, conv["kernel"], conv["bias"])
        x = jax.nn.relu(dense(params["dense0"], x.reshape(x.shape[0], -1)))
        return dense(params["dense1"], x)


def pooled_layer(
    x: Float[Array, "batch height width channels"],
    kernel: Float[Array, "rows columns channels outputs"],
    bias: Float[Array, " outputs"],
) -> Float[Array, "batch half_height half_width outputs"]:
    """Convolution, 2 x 2 maxima, bias, ReLU."""
    if hopper.serves(x, kernel):
        return hopper.layer(x, kernel, bias)
    return jax.nn.relu(convolve_and_halve(x, kernel) + bias)


def portable_layer(
    x: Float[Array, "batch height width channels"],
    kernel: Float[Array, "rows columns channels outputs"],
    bias: Float[Array, " outputs"],
) -> Float[Array, "batch half_height half_width outputs"]:
    """The same by the convolution and the pooling of the library."""
    found = by_library(x, kernel) + bias
    height, width = found.shape[1] // 2 * 2, found.shape[2] // 2 * 2
    pixels = [found[:, row:height:2, column:width:2] for row in (0, 1) for column in (0, 1)]
    return jax.nn.relu(reduce(jnp.maximum, pixels))
