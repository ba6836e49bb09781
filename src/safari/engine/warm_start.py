"""Parameters to begin with that another run left."""

import os
from pathlib import Path
from typing import Any

import jax

from safari.data import Dataset
from safari.engine.trained_model import TrainedModel
from safari.errors import InputError, check
from safari.models import Model, Params, from_named, named_arrays, named_leaves

KEY = "train.start"


def starting_params(start: Any, model: Model, dataset: Dataset) -> Params:
    """The parameters that `start` holds, in the structure of the model.

    Args:
        start: parameters, a `TrainedModel`, or the path of a run directory or a .safetensors file.
        model: the model that is to be trained.
        dataset: what it is to be trained on.

    Raises:
        InputError: if they are of other shapes, or of a model that names its classes otherwise.
    """
    said, labels = "parameters", None
    if isinstance(start, str | os.PathLike):
        from safari.engine.model_file import read_arrays_and_labels

        said = str(start)
        found, labels = read_arrays_and_labels(Path(start), KEY)
    else:
        params = start.params if isinstance(start, TrainedModel) else start
        labels = start.labels if isinstance(start, TrainedModel) else None
        found = named_arrays(params)
    if labels is not None and labels != dataset.labels:
        hint = f"tells {_some(labels)} apart, the data {_some(dataset.labels)}"
        raise InputError(KEY, said, hint)
    like = jax.eval_shape(lambda: model.init(jax.random.key(0), dataset.shape, dataset.classes))
    wanted = {name: tuple(leaf.shape) for name, leaf in named_leaves(like)}
    given = {name: tuple(value.shape) for name, value in found.items()}
    for name in {**wanted, **given}:
        has, needs = given.get(name), wanted.get(name)
        check(has == needs, KEY, said, f"has {_what(name, has)}, the model needs {_what(name, needs)}")
    return from_named({name: value.astype("float32") for name, value in found.items()}, like)


def _what(name: str, shape: tuple[int, ...] | None) -> str:
    return f"no {name}" if shape is None else f"{name} of shape {shape}"


def _some(labels: tuple[str, ...]) -> str:
    return f"{len(labels)} classes ({', '.join(labels[:3])}{', ...' if len(labels) > 3 else ''})"
