"""A model as plain values, from which it can be made again: its name and its settings."""

import dataclasses
import json
from typing import Any

import jax
import numpy as np

from safari.errors import InputError
from safari.models.base import Model
from safari.models.equinox_module import EquinoxModel, build_module
from safari.registry import MODELS, is_own, own_class, reason

NAME = "name"


def describe_model(model: Model) -> dict[str, Any] | None:
    """The name and the settings of a model; None for a module whose settings nobody knows any more."""
    if isinstance(model, EquinoxModel):
        return None if model.recipe is None else json.loads(model.recipe)
    settings = {
        field.name: _plain(getattr(model, field.name)) for field in dataclasses.fields(model) if field.init
    }
    return {NAME: MODELS.name_of(type(model)), **settings}


def make_model(description: dict[str, Any], shape: tuple[int, ...], classes: int) -> Model:
    """The model that was described.

    Raises:
        InputError: if it is of a user's own class that is not to be found any more.
    """
    settings = {name: _tuples(value) for name, value in description.items() if name != NAME}
    name = description[NAME]
    cls: Any = own_class(name, "model") if is_own(name) else MODELS.find(name, "model")
    try:
        if isinstance(cls, type) and issubclass(cls, Model):
            return cls(**settings)
        return build_module(cls, settings, jax.random.key(0), shape, classes)
    except InputError:
        raise
    except Exception as error:  # the class may have changed in any way since
        raise InputError("model", name, f"cannot be made with its settings ({reason(error)})") from None


def _plain(value: Any) -> Any:
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return np.asarray(value).tolist()
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value
