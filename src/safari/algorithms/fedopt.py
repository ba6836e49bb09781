"""An optimiser on the server, fed with the averaged update: FedAdam, or any of optax."""

import inspect
import warnings
from abc import abstractmethod
from functools import lru_cache
from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task
from safari.errors import InputError, check_positive
from safari.models import Params

REDDI = Paper("Reddi et al.", "Adaptive Federated Optimization", "ICLR", 2021)


class ServerOptimised(ClientAlgorithm):
    r"""Reddi et al.: Adaptive Federated Optimization (ICLR 2021).

    The negated average change $-\Delta_r$ is handed to an optax optimiser as if it were a
    gradient; `global_rate` is that optimiser's learning rate.
    """

    sum_only: ClassVar[bool] = True

    @abstractmethod
    def optimiser(self) -> optax.GradientTransformation:
        """The optimiser, built from the leaves."""

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        return self.optimiser().init(params), None

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        descent = jax.tree.map(jnp.negative, reports.update())
        step, memory = self.optimiser().update(descent, state.server_memory, state.params)
        return ClientState(optax.apply_updates(state.params, step), memory, None)


class FedAdam(ServerOptimised):
    r"""Reddi et al. (ICLR 2021): Adam on the server, with the bias correction of Kingma and Ba (ICLR 2015).

    The paper's Algorithm 2 leaves that correction out, and begins its second moment at $\tau^2$, not at 0.

    Args:
        global_rate: Adam's learning rate.
        b1: decay rate of the first moment.
        b2: decay rate of the second moment.
        eps: the adaptivity $\tau$.
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=REDDI,
        rests_on="the paper; Adam is that of optax, with bias correction",
        server_memory=2,
    )

    global_rate: float = 0.01
    b1: float = 0.9
    b2: float = 0.99
    eps: float = 1e-3

    def __check_init__(self) -> None:
        for name in ("b1", "b2"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "must be at least 0 and below 1")
        check_positive("eps", self.eps)

    def optimiser(self) -> optax.GradientTransformation:
        return optax.adam(self.global_rate, b1=self.b1, b2=self.b2, eps=self.eps)


class FedOpt(ServerOptimised):
    """Reddi et al. (ICLR 2021): any optimiser of optax that needs no more than a learning rate.

    Args:
        optimizer: its name in optax: sgd, adam, yogi, adagrad, ...
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=REDDI,
        rests_on="the paper; the optimisers are those of optax",
    )

    optimizer: str = "sgd"

    def __check_init__(self) -> None:
        if (wrong := _unusable(self.optimizer)) is not None:
            hint = f"must be an optimiser of optax that {wrong}: adam, yogi, adagrad, ..."
            raise InputError("optimizer", self.optimizer, hint)

    def optimiser(self) -> optax.GradientTransformation:
        return getattr(optax, self.optimizer)(self.global_rate)


@lru_cache(maxsize=128)
def _unusable(name: str) -> str | None:
    """What an optimiser must do that this one does not; None if it can be used."""
    make, needs_a_rate = getattr(optax, name, None), "needs no more than a learning rate"
    if name.startswith("scale_by_") or not inspect.isfunction(make):
        return needs_a_rate
    if "learning_rate" not in inspect.signature(make).parameters:
        return needs_a_rate
    params = {"weight": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
    try:
        with warnings.catch_warnings(action="ignore"):
            optimiser = make(0.1)
            before = jax.eval_shape(optimiser.init, params)
            _, after = jax.eval_shape(optimiser.update, params, before, params)
    except Exception:  # what an optimiser that wants more does without it is its own affair
        return "needs gradients alone"
    if any(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in jax.tree.leaves(before)):
        return "draws nothing at random"
    shapes = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(state)] for state in (before, after)]
    return None if shapes[0] == shapes[1] else "keeps the shape of its state"
