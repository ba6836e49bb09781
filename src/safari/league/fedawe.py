"""What table 2 of Xiang et al. (FedAWE, NeurIPS 2024) was measured with: network, schedule, who comes when.

The numbers that they printed stand in `PRINTED`. Nothing is tuned: rates and constants are the paper's.
"""

from itertools import pairwise
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.algorithms.schedule import Schedule
from safari.data import Federation
from safari.errors import InputError, check_fraction
from safari.models import Model, Params
from safari.models.cnn import pooled_layer
from safari.models.dense import dense
from safari.participation.availability.base import Availability, State
from safari.randomness import host_stream

PRINTED = {
    "fedawe": (66.3, 63.5),
    "fedavg": (62.9, 62.1),
    "fedau": (64.1, 63.0),
    "f3ast": (63.5, 62.3),
    "known-p": (63.1, 67.3),
    "mifa": (65.3, 65.5),
    "fedvarp": (66.3, 66.0),
}
"""Accuracy in per cent, stationary and sine: the mean of the last 50 of 2000 rounds, three seeds. FedAvg is
the one over the clients that are there; safari has none over all clients."""

CHANNELS, KERNEL, WIDTHS = (32, 32), 3, (256, 64)


class Network(Model):
    """Two 3 x 3 convolutions of 32 channels, pooled 2 x 2, and dense layers of 256 and 64 units; He's start.

    Examples:
        >>> import jax
        >>> from safari.league.fedawe import Network
        >>> params = Network().init(jax.random.key(0), (32, 32, 3), 10)
        >>> params["dense0"]["weight"].shape, params["dense2"]["weight"].shape
        ((2048, 256), (64, 10))
    """

    side_by_side: ClassVar[bool] = False

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        height, width, inputs = shape
        layers: list[tuple[str, str, tuple[int, ...]]] = []
        for number, outputs in enumerate(CHANNELS):
            layers.append((f"conv{number}", "kernel", (KERNEL, KERNEL, inputs, outputs)))
            height, width, inputs = height // 2, width // 2, outputs
        sizes = (height * width * inputs, *WIDTHS, classes)
        layers += [(f"dense{number}", "weight", pair) for number, pair in enumerate(pairwise(sizes))]
        start = jax.nn.initializers.he_normal()
        return {
            layer: {
                name: start(jax.random.fold_in(key, number), whole, jnp.float32),
                "bias": jnp.zeros(whole[-1]),
            }
            for number, (layer, name, whole) in enumerate(layers)
        }

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        for number in range(len(CHANNELS)):
            x = pooled_layer(x, params[f"conv{number}"]["kernel"], params[f"conv{number}"]["bias"])
        x = x.reshape(x.shape[0], -1)
        for number in range(len(WIDTHS)):
            x = jax.nn.relu(dense(params[f"dense{number}"], x))
        return dense(params[f"dense{len(WIDTHS)}"], x)


class ByRoot(Schedule):
    r"""Rates fall as $1 / \sqrt{r / 10 + 1}$.

    Examples:
        >>> from safari.league.fedawe import ByRoot
        >>> float(ByRoot().factor(30, rounds=2000))
        0.5
    """

    def factor(self, number: Int[Array, ""], rounds: int) -> Float[Array, ""]:
        return 1 / jnp.sqrt(number / 10 + 1)


class ByClasses(Availability):
    r"""Client i comes in round r with probability $p_i (s \sin(2 \pi r / P) + 1 - s)$.

    Args:
        rate: $p_i$, one for each client.
        swing: s; 0 is the stationary setting, 0.3 the paper's sine.
        period: P, in rounds.

    Examples:
        >>> from safari.league.fedawe import ByClasses
        >>> [round(float(rate), 2) for rate in ByClasses(rate=(0.5, 1.0), swing=0.3).rates(None, 5, 2)]
        [0.5, 1.0]
    """

    independent: ClassVar[bool] = True
    rate: tuple[float, ...] = ()
    swing: float = 0.0
    period: float = 20.0

    def __check_init__(self) -> None:
        check_fraction("swing", self.swing)

    def check(self, clients: int) -> None:
        if len(self.rate) != clients:
            raise InputError("rate", self.rate, f"needs one rate for each of {clients} clients")

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jax.random.uniform(key, (clients,)) < self.rates(state, round, clients)

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        wave = self.swing * jnp.sin(2 * jnp.pi * round / self.period) + 1 - self.swing
        return wave * jnp.asarray(self.rate, jnp.float32)


def rates_of(federation: Federation, seed: int) -> list[float]:
    r"""$p_i = \langle \nu_i, \phi \rangle$: the class shares of client i, times how present each class is.

    The paper draws $\phi$ uniformly, up to 1 for the first half of the classes and up to 0.5 for the others.
    """
    counts = np.asarray(federation.label_counts()[0], float)
    shares = counts / counts.sum(axis=1, keepdims=True)
    classes = shares.shape[1]
    most = np.where(np.arange(classes) < classes // 2, 1.0, 0.5)
    present = host_stream(seed, "how present each class is").uniform(0, most)
    return [round(float(rate), 6) for rate in shares @ present]
