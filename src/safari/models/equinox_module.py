"""An equinox module as a model, as it is: called with one sample, it returns the logits."""

import inspect
import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from safari.errors import InputError
from safari.models.base import Model, Params
from safari.registry import MODELS


class EquinoxModel(Model):
    """A classifier around an equinox module, which is called sample by sample.

    As everywhere in equinox, the arrays of floats are trained. All other arrays are constants, and what
    is no array (numbers, functions) is static.

    Args:
        module: the module; training starts from the arrays that it holds.
        recipe: the name of its class and the settings that it was made with, as JSON, where they are known.
    """

    trained: Params
    constants: PyTree[Array]
    static: eqx.Module = eqx.field(static=True)
    recipe: str | None = eqx.field(static=True)

    def __init__(self, module: eqx.Module, recipe: str | None = None):
        self.recipe = recipe
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
    return model if isinstance(model, Model) else EquinoxModel(as_module(model))


def as_module(module: Any) -> eqx.Module:
    """An equinox module that can be called.

    Raises:
        InputError: if it is something else.
    """
    if isinstance(module, eqx.Module) and callable(module):
        return module
    raise InputError("model", module, "must be a safari.Model, or an equinox module that can be called")


def build_module(
    cls: type[eqx.Module], fields: dict[str, Any], key: Key[Array, ""], shape: tuple[int, ...], classes: int
) -> Model:
    """A module of a user's class; it is given `key`, `shape` and `classes` if its signature asks for them."""
    known = inspect.signature(cls).parameters
    given = {"key": key, "shape": shape, "classes": classes}
    module = cls(**fields, **{name: value for name, value in given.items() if name in known})
    return EquinoxModel(as_module(module), _recipe(cls, fields))


def _recipe(cls: type, fields: dict[str, Any]) -> str | None:
    try:
        return json.dumps({"name": MODELS.name_of(cls), **fields})
    except TypeError:  # a setting that is no plain value
        return None
