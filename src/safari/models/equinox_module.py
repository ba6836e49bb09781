"""An equinox module as a model, as it is: called with one sample, it returns the logits."""

import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from safari.errors import InputError
from safari.models.base import Model, Params


class EquinoxModel(Model):
    """A classifier around an equinox module, which is called sample by sample.

    As everywhere in equinox, the arrays of floats are trained. All other arrays are constants, and what
    is no array (numbers, functions) is static.

    Args:
        module: the module; training starts from the arrays that it holds.
    """

    trained: Params
    constants: PyTree[Array]
    static: eqx.Module = eqx.field(static=True)

    def __init__(self, module: eqx.Module):
        module = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, module
        )
        self.trained, rest = eqx.partition(module, eqx.is_inexact_array)
        self.constants, self.static = eqx.partition(rest, eqx.is_array)

    def init(self, key: Key[Array, ""], shape: tuple[int, ...], classes: int) -> Params:
        return self.trained

    def apply(self, params: Params, x: Float[Array, "batch *shape"]) -> Float[Array, "batch classes"]:
        return jax.vmap(eqx.combine(params, self.constants, self.static))(x)


def as_model(model: Any) -> Model:
    """The model, or an equinox module as one.

    Raises:
        InputError: if it is neither.
    """
    if isinstance(model, Model):
        return model
    if isinstance(model, eqx.Module) and callable(model):
        return EquinoxModel(model)
    raise InputError("model", model, "must be a safari.Model, or an equinox module that can be called")


def build_module(
    cls: type[eqx.Module], fields: dict[str, Any], key: Key[Array, ""], shape: tuple[int, ...], classes: int
) -> Model:
    """A module of a user's class; it is given `key`, `shape` and `classes` if its signature asks for them."""
    known = inspect.signature(cls).parameters
    given = {"key": key, "shape": shape, "classes": classes}
    return as_model(cls(**fields, **{name: value for name, value in given.items() if name in known}))
