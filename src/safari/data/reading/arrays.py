"""Arrays: samples first, labels and clients beside them; and .npz files of such arrays."""

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data.dataset import checked_clients, checked_samples
from safari.data.reading.empty import warn_of_empty_columns
from safari.data.reading.frames import coded
from safari.data.reading.options import Options
from safari.data.samples import Samples
from safari.errors import InputError, check

REQUIRED = ("x", "y")
OPTIONAL = ("client", "x_test", "y_test")


def read_arrays(
    x: Any,
    y: Any,
    client: Any,
    options: Options,
    origin: str = "the arrays",
    features: Sequence[str] | None = None,
) -> Samples:
    """The samples in arrays. Labels and clients may be texts or numbers."""
    x, y = checked_x(np.asarray(x), options), np.asarray(y)
    one_each = f"must hold one label for each of the {len(x)} samples"
    check(y.shape == (len(x),), "label", f"array of shape {y.shape}", one_each)
    numbers, labels = coded(series("label", y), options, origin, options.labels)
    said = f'every sample has the label "{labels[0]}"; two classes are needed'
    check(options.extra or len(labels) > 1, "label", f"array of shape {y.shape}", said)
    holder, clients = None, None
    if client is not None and not options.extra:
        client = np.asarray(client)
        one_each = f"must hold one client for each of the {len(x)} samples"
        check(client.shape == (len(x),), "client", f"array of shape {client.shape}", one_each)
        holder, clients = coded(series("client", client), options, origin)
    if features is not None:
        features = tuple(map(str, features))
        once = len(features) == len(set(features)) == x.shape[1] and x.ndim == 2
        check(once, "features", list(features), f"must name each of the {x.shape[1]} columns of x once")
        left = [place for place, name in enumerate(features) if name not in options.drop]
        x, features = x[:, left], tuple(features[place] for place in left)
    warn_of_empty_columns(x, features, origin)
    name = "own" if origin == "the arrays" else Path(origin).stem
    return options.finish(Samples(x, numbers, labels, holder, clients, features, name, origin))


def checked_x(x: np.ndarray, options: Options) -> np.ndarray:
    """Samples as uint8 or float32, NaN only where it may be."""
    nothing = np.zeros(len(x) if x.ndim else 0, np.int32)
    return checked_samples("x", x, "y", nothing, missing=options.missing is not None)[0]


def series(name: str, values: np.ndarray) -> pl.Series:
    """An array of texts or numbers as a column."""
    if values.dtype.kind in "OSU":
        values = np.array([value.decode() if isinstance(value, bytes) else str(value) for value in values])
        return pl.Series(name, values.tolist(), dtype=pl.String)
    return pl.Series(name, values)


def read_npz(path: Path, options: Options) -> Samples:
    """The samples in an .npz file: x and y, and if wanted client, x_test and y_test.

    What it holds is taken as it is, unless `options` say otherwise: whole numbers are the numbers of the
    classes and of the clients.
    """
    arrays = load_arrays(path, options.key)
    _check_arrays(path, options.key, arrays)
    x, y, client = arrays["x"], arrays["y"], arrays.get("client")
    if options.client is False:
        client = None
    missing = options.missing is not None
    plain = options.labels is None and y.dtype.kind not in "OSU"
    if plain:
        x, y = checked_samples("x", x, "y", y, missing=missing)
        labels = tuple(map(str, range(int(y.max()) + 1)))
    else:
        x = checked_x(x, options)
        y, labels = coded(series("y", y), options, path.name, options.labels)
    warn_of_empty_columns(x, None, path.name)
    clients = None
    if client is not None and client.dtype.kind in "OSU":
        client, clients = coded(series("client", client), options, path.name)
    elif client is not None:
        client = checked_clients(client, len(x))
        clients = tuple(map(str, range(int(client.max()) + 1)))
    found = Samples(x, y, labels, client, clients, None, path.stem, path.name)
    found = replace(options.finish(found), scale=options.scale or "none")
    if "x_test" not in arrays:
        return found
    return replace(found, test=_test_of(arrays, found, plain, options))


def _test_of(arrays: dict[str, np.ndarray], found: Samples, plain: bool, options: Options) -> Samples:
    """The test set of an .npz file; whole numbers may go beyond those of the training samples."""
    x, y = arrays["x_test"], arrays["y_test"]
    if plain:
        x, y = checked_samples("x_test", x, "y_test", y, missing=options.missing is not None)
        labels = tuple(map(str, range(max(len(found.labels), int(y.max()) + 1))))
        return replace(found, x=x, y=y, labels=labels, client=None, clients=None)
    x = checked_x(x, options)
    y, labels = coded(series("y_test", y), options, found.origin, options.labels)
    return replace(found, x=x, y=y, labels=labels, client=None, clients=None)


def load_arrays(path: Path, key: str) -> dict[str, np.ndarray]:
    """All arrays of an .npz file, by their names."""
    check(path.is_file(), key, str(path), "no such file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise InputError(key, str(path), f"cannot be read as .npz ({error})") from None


def _check_arrays(path: Path, key: str, arrays: dict[str, np.ndarray]) -> None:
    missing = [name for name in REQUIRED if name not in arrays]
    check(not missing, key, str(path), f"lacks {' and '.join(missing)}; it has {', '.join(arrays)}")
    unknown = [name for name in arrays if name not in REQUIRED + OPTIONAL]
    check(not unknown, key, str(path), f"has {unknown[:1]}; known are {', '.join(REQUIRED + OPTIONAL)}")
    both = ("x_test" in arrays) == ("y_test" in arrays)
    check(both, key, str(path), "needs x_test and y_test, or neither")
