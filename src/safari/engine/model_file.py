"""A trained model in one .safetensors file: the parameters as tensors, all else in its metadata."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.data.reading import ENDINGS
from safari.engine.trained_model import TrainedModel
from safari.errors import InputError, check
from safari.models import (
    EquinoxModel,
    Model,
    Params,
    as_model,
    describe_model,
    from_named,
    make_model,
    named_arrays,
    named_leaves,
)
from safari.version import __version__

NAME = "model.safetensors"
FORMAT = 1
ENTRY = "safari"
"""The entry of the metadata: a checksum over the tensors and what follows it, then JSON."""
CONSTANTS = "constants."
"""How the names of a module's arrays begin that are not trained."""


def pack_model(trained: TrainedModel) -> bytes:
    """The file as bytes. Its tensors are named by their place: `weight`, `conv0.kernel`, ..."""
    arrays = named_arrays(trained.params)
    if isinstance(trained.model, EquinoxModel):
        constants = named_arrays(trained.model.constants)
        arrays |= {f"{CONSTANTS}{name}": value for name, value in constants.items()}
    about = {
        "format": FORMAT,
        "version": __version__,
        "model": describe_model(trained.model),
        "class": type(trained.model).__name__,
        "shape": trained.shape,
        "labels": trained.labels,
        "features": trained.features,
        "label": trained.label,
        "scale": trained.scale.tolist(),
        "shift": None if trained.shift is None else trained.shift.tolist(),
        "fill": None if trained.fill is None else trained.fill.tolist(),
        "precision": trained.precision,
    }
    # One entry alone: the library writes several in an order of chance, and equal models make equal files.
    text = json.dumps(about)
    return save_tensors(arrays, {ENTRY: f"{_checksum(arrays, text)} {text}"})


def write_model(trained: TrainedModel, path: Path) -> None:
    check(path.suffix == ".safetensors", "path", str(path), "must end in .safetensors")
    write_whole(path, pack_model(trained))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or as before."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            beside.write_bytes(content)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError("path", str(path), f"cannot be written ({error.strerror})") from None


def load(path: str | Path, model: Any = None) -> TrainedModel:
    """Load a trained model.

    Args:
        path: a run directory, or the model's .safetensors file, which is enough by itself.
        model: the model that the parameters belong to, where the file cannot say: an equinox module that
            was handed to `safari.train`, or a class that has moved.

    Returns:
        The model; it predicts what it predicted when it was saved.

    Raises:
        InputError: if there is no such file, it is damaged, or not one of safari's.

    Examples:
        >>> import pathlib, tempfile, safari
        >>> result = safari.train(safari.federate("digits"), rounds=2)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> result.model.save(path)
        >>> safari.load(path)
        TrainedModel(Logistic, 650 parameters, classes 0, 1, 2, 3, ...)
    """
    place = Path(path)
    if place.is_dir():
        place = place / NAME
        check(place.is_file(), "model", str(path), f"holds no {NAME}: no run that has finished")
    about, arrays = _read(place)
    shape, labels = tuple(about["shape"]), tuple(about["labels"])
    made = _made(place, about, shape, len(labels)) if model is None else as_model(model)
    return TrainedModel(
        model=_with_constants(made, arrays),
        params=_params(place, made, arrays, shape, len(labels)),
        shape=shape,
        labels=labels,
        scale=np.asarray(about["scale"], np.float32),
        shift=_array(about["shift"]),
        fill=_array(about["fill"]),
        features=None if about["features"] is None else tuple(about["features"]),
        label=about.get("label"),  # older files do not know it
        precision=about["precision"],
    )


def _array(values: Any) -> np.ndarray | None:
    return None if values is None else np.asarray(values, np.float32)


def read_arrays_and_labels(path: Path, key: str = "model") -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The parameters in a model's file (or a run directory's), by their names; the names of its classes."""
    try:
        about, arrays = _read(path / NAME if path.is_dir() else path)
    except InputError as error:
        raise InputError(key, error.value, error.allowed) from None
    params = {name: value for name, value in arrays.items() if not name.startswith(CONSTANTS)}
    return params, tuple(about["labels"])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a file says of its model, and its arrays; whole and ours, or refused."""
    try:
        content = path.read_bytes()
    except OSError as error:
        hint = (
            "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        )
        raise InputError("model", str(path), hint) from None
    try:
        arrays = load_tensors(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = header.get("__metadata__", {})
    except (SafetensorError, ValueError) as error:
        hint = "is a file of samples; the model comes first: a run directory, or a .safetensors file"
        check(path.suffix.lower() not in ENDINGS, "model", str(path), hint)
        raise InputError("model", str(path), f"is damaged, or no .safetensors file ({error})") from None
    checksum, _, text = metadata.get(ENTRY, "").partition(" ")
    if not text:
        hint = (
            "holds parameters, but not what they belong to: it is of a Flower app of your own, "
            "which can load it, or of an older safari"
        )
        raise InputError("model", str(path), hint)
    if checksum != _checksum(arrays, text):
        raise InputError("model", str(path), "is damaged: its checksum does not fit its content")
    about = json.loads(text)
    if about["format"] > FORMAT:
        raise InputError("model", str(path), f"was written by safari {about['version']}; update safari")
    return about, arrays


def _made(path: Path, about: dict[str, Any], shape: tuple[int, ...], classes: int) -> Model:
    if about["model"] is None:
        hint = "is of a module of your own: pass it, safari.load(path, model=Module(...))"
        raise InputError("model", str(path), hint)
    return make_model(about["model"], shape, classes)


def _params(
    path: Path, model: Model, arrays: dict[str, np.ndarray], shape: tuple[int, ...], classes: int
) -> Params:
    like = jax.eval_shape(lambda: model.init(jax.random.key(0), shape, classes))
    found = {name: value for name, value in arrays.items() if not name.startswith(CONSTANTS)}
    wanted = {name: tuple(leaf.shape) for name, leaf in named_leaves(like)}
    if wanted != {name: value.shape for name, value in found.items()}:
        raise InputError(
            "model", str(path), f"holds parameters of another shape than {type(model).__name__} has"
        )
    return from_named(found, like)


def _with_constants(model: Model, arrays: dict[str, np.ndarray]) -> Model:
    if not isinstance(model, EquinoxModel):
        return model
    found = {
        name.removeprefix(CONSTANTS): value for name, value in arrays.items() if name.startswith(CONSTANTS)
    }
    return eqx.tree_at(lambda one: one.constants, model, from_named(found, model.constants))


def _checksum(arrays: dict[str, np.ndarray], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype} {value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()
