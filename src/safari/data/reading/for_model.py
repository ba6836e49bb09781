"""Samples that a trained model is applied to: with labels to score it, without to predict them."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data.reading.arrays import checked_x, load_arrays, series
from safari.data.reading.empty import warn_of_empty_columns
from safari.data.reading.files import FORMATS, open_table
from safari.data.reading.frames import check_columns, coded, matrix
from safari.data.reading.options import CLIENT, LABEL, Options
from safari.data.reading.read import NPZ, as_frame
from safari.data.samples import check_known
from safari.errors import InputError, check

Features = tuple[str, ...] | None


def open_for_model(
    path: Path, label: str | None, key: str, client: str | None = None
) -> pl.DataFrame | dict[str, np.ndarray]:
    """The table in a file, or the arrays in an .npz file.

    Raises:
        InputError: if it is not there or cannot be read; `key` is what the file is called in messages.
    """
    ending = path.suffix.lower()
    if ending == NPZ:
        return load_arrays(path, key)
    if ending not in FORMATS:
        known = ", ".join((*FORMATS, NPZ))
        raise InputError(key, str(path), f"must be a file ({known})" if path.exists() else "no such file")
    return open_table(path, Options(label=label, client=client, key=key))


def samples_in(data: Any, features: Features, gaps: bool, key: str, origin: str) -> np.ndarray:
    """Samples as an array.

    Args:
        data: a frame, an array, or the arrays of an .npz file.
        features: the columns to take from a table, in this order; others are not looked at.
        gaps: whether values may be missing; they are NaN then.
        key: what the samples are called in messages.
        origin: where they come from, in messages.

    Raises:
        InputError: if a column is missing or a value cannot be used.
    """
    options = Options(missing="mean" if gaps else None, key=key)
    frame = as_frame(data)
    if frame is None:
        x = np.asarray(_array(data, "x", key, origin) if isinstance(data, dict) else data)
        x = checked_x(x, options) if len(x) else x.astype(np.float32)
        warn_of_empty_columns(x, features, origin)
        return x
    check_columns(frame.columns, key, origin)
    for name in features or ():
        check(name in frame.columns, key, origin, f"lacks column {name}, which the model needs")
    names = features or frame.columns
    x = matrix(frame, names, options, origin)
    warn_of_empty_columns(x, names, origin)
    return x


def labels_in(data: Any, label: Any, names: tuple[str, ...], key: str, origin: str) -> np.ndarray:
    """The class of every sample by number.

    Args:
        data: what holds the samples.
        label: the column of the labels (None: `label`), or the labels themselves.
        names: the names of the classes.
        key: what the samples are called in messages.
        origin: where they come from, in messages.

    Raises:
        InputError: if there are none, or one is not among `names`.
    """
    frame, options = as_frame(data), Options(key=key)
    if frame is not None and (label is None or isinstance(label, str)):
        column = LABEL if label is None else label
        check_known("label", column, frame.columns, f"column of {origin}")
        return coded(frame[column], options, origin, names)[0]
    y = np.asarray(_array(data, "y", key, origin) if isinstance(data, dict) else label)
    fine = y.ndim == 1 and (frame is None or len(y) == frame.height)
    check(fine, "label", f"array of shape {y.shape}", "must hold one label for each of the samples")
    return coded(series("label", y), options, origin, names)[0]


def clients_in(data: Any, client: Any, key: str, origin: str) -> np.ndarray:
    """The name of the client that each sample is of.

    Args:
        data: what holds the samples.
        client: the column of the clients, or the clients themselves.
        key: what the samples are called in messages.
        origin: where they come from, in messages.

    Raises:
        InputError: if there are none.
    """
    frame, options = as_frame(data), Options(key=key)
    if frame is not None and isinstance(client, str):
        check_known("client", client, frame.columns, f"column of {origin}")
        column = frame[client]
    else:
        column = series(
            "client", np.asarray(_array(data, CLIENT, key, origin) if isinstance(data, dict) else client)
        )
    numbers, names = coded(column, options, origin)
    return np.array(names)[numbers]


def _array(arrays: dict[str, np.ndarray], name: str, key: str, origin: str) -> np.ndarray:
    check(name in arrays, key, origin, f"lacks {name}; it has {', '.join(arrays)}")
    return arrays[name]
