"""`read`: samples from whatever holds them."""

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data.reading.arrays import read_arrays, read_npz
from safari.data.reading.files import FORMATS, header, open_table, read_folder, read_table_file, table_files
from safari.data.reading.frames import read_frame
from safari.data.reading.handed_over import read_hugging_face, read_torch
from safari.data.reading.images import IMAGES, holds_clients, holds_images, read_images
from safari.data.reading.options import CLIENT, Options
from safari.data.samples import Missing, Samples, Scale
from safari.errors import InputError, check
from safari.registry import SOURCES

NPZ = ".npz"
ENDINGS = (*FORMATS, NPZ)
PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")


def read(
    data: Any,
    label: Any = None,
    client: Any = None,
    *,
    labels: Sequence[str | int] | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    missing: Missing | None = None,
    scale: Scale | None = None,
) -> Samples:
    """Read labelled samples.

    Args:
        data: the path of a `.csv`, `.tsv`, `.parquet`, `.arrow`, `.feather` or `.npz` file, of a folder
            with one such file a client, or of a folder with one folder of images a class (or with one folder
            a client, and the classes in it); a polars or pandas frame; an array of samples; a Hugging Face
            `Dataset`; or a map-style `Dataset` of PyTorch, whose items are (x, y) or (x, y, client).
        label: the column of the labels, texts or numbers (default: `label`). For an array the labels
            themselves.
        client: the column that says who holds a sample (default: `client`, where there is one); False if no
            column does. In a folder with a file for each client, it is for the test file. For an array the
            clients themselves.
        labels: the names of all classes, in order (default: those that occur).
        features: for an array: the names of its columns.
        drop: columns that are left out.
        missing: `mean` lets the mean of the server's samples stand for missing values; they are refused
            otherwise.
        scale: `standard` makes every feature mean 0 and deviation 1 over the server's samples, which is what
            a simulation and a fleet both have; `none` takes samples as they are (default: `standard` for
            tables and arrays of flat samples, `none` for images and `.npz` files).

    Returns:
        The samples, to be given to `safari.federate`.

    Raises:
        InputError: if a value cannot be used, naming column and row.

    Examples:
        >>> import polars as pl, safari
        >>> frame = pl.DataFrame({"age": [50, 61, 43], "clinic": ["a", "a", "b"], "sick": ["n", "y", "n"]})
        >>> safari.read(frame, label="sick", client="clinic")
        Samples(the frame: 3 samples, 1 feature, 2 classes (n 2, y 1), 2 clients (a 2, b 1))
    """
    names = None if labels is None else tuple(map(str, labels))
    if _is_array(data):
        options = Options(labels=names, drop=tuple(drop), missing=missing, scale=scale)
        check(label is not None, "label", label, "must be the labels of the samples, as an array")
        return read_arrays(data, label, None if client is False else client, options, features=features)
    if _comes_from(data, "torch"):
        options = Options(labels=names, drop=tuple(drop), missing=missing, scale=scale)
        check(label is None, "label", label, "is not for a data set of PyTorch: its items are (x, y)")
        return read_torch(data, client, options)
    check(features is None, "features", features, "is for arrays; the columns of a table have names")
    check(label is None or isinstance(label, str), "label", label, "must be the name of a column")
    known = client is None or isinstance(client, str | bool)
    check(known, "client", client, "must be the name of a column, or False")
    options = Options(label, client, names, tuple(drop), missing, scale)
    if isinstance(data, str | os.PathLike):
        return read_path(Path(data), options)
    if _comes_from(data, "datasets"):
        return read_hugging_face(data, options)
    frame = as_frame(data)
    if frame is None:
        raise InputError("data", type(data).__name__, "must be a path, a frame, an array or a data set")
    return read_frame(frame, options, "frame", "the frame")


def as_frame(data: Any) -> pl.DataFrame | None:
    """A table of polars or pandas as one of polars; None for anything else."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    return _from_pandas(data) if _comes_from(data, "pandas") else None


def read_path(path: Path, options: Options) -> Samples:
    """The samples in a file or a folder."""
    ending = path.suffix.lower()
    if ending == NPZ:
        return read_npz(path, options)
    if path.is_dir():
        if table_files(path):
            return read_folder(path, options)
        if holds_images(path):
            return read_images(path, options)
        hint = f"holds no file that can be read ({', '.join(FORMATS)}), and no folder of images"
        raise InputError(options.key, str(path), f"{hint} ({', '.join(IMAGES)})")
    if ending in FORMATS:
        return read_table_file(path, options)
    hint = f"must be a file ({', '.join(ENDINGS)}) or a folder" if path.exists() else "no such file"
    if ending in PACKED and path.exists():
        hint = "is compressed; unpack it first, or save it as .parquet, which is small too"
    raise InputError(options.key, str(path), hint)


def is_file_name(text: str, folder: Path = Path()) -> bool:
    """Whether a text names a file or folder of samples (seen from `folder`), not a data set or class."""
    if text.lower().endswith((*ENDINGS, *PACKED)):
        return True
    return text not in SOURCES and ":" not in text and (os.sep in text or (folder / text).is_dir())


def names_clients(path: Path, client: str | bool | None) -> bool:
    """Whether the file says who holds a sample; its samples are not read.

    False for a file that is not there or cannot be read: reading it will say so.
    """
    if isinstance(client, str | bool):
        return bool(client)
    try:
        if path.suffix.lower() == NPZ:
            with zipfile.ZipFile(path) as archive:
                return f"{CLIENT}.npy" in archive.namelist()
        if path.is_dir():
            return bool(table_files(path)) or holds_clients(path)
    except (OSError, zipfile.BadZipFile):
        return False
    return has_column(path, CLIENT)


def has_column(path: Path, name: str) -> bool:
    """Whether the table in a file has this column; False for a file that is no table, or cannot be read."""
    return name in columns_in(path)


def columns_in(path: Path) -> list[str]:
    """The columns of the tables in a file or folder; none where there is no table, or it cannot be read."""
    try:
        if path.is_dir():
            return [name for file in table_files(path) for name in columns_in(file)]
        return _columns(path) if path.suffix.lower() in FORMATS else []
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return []


def _columns(path: Path) -> list[str]:
    ending = path.suffix.lower()
    if ending in (".csv", ".tsv"):
        return header(path)
    return list(pl.read_parquet_schema(path)) if ending == ".parquet" else open_table(path, Options()).columns


def _is_array(data: Any) -> bool:
    return isinstance(data, np.ndarray) or _comes_from(data, "jax", "jaxlib")


def _comes_from(data: Any, *packages: str) -> bool:
    """Whether a class of `data` is of one of these libraries, none of which is imported for it."""
    return any(cls.__module__.partition(".")[0] in packages for cls in type(data).__mro__)


def _from_pandas(frame: Any) -> pl.DataFrame:
    """A pandas frame by its columns; the index is left behind."""
    columns = [str(name) for name in frame.columns]
    for name in columns:
        check(columns.count(name) == 1, "data", "the frame", f"has column {name} twice")
    return pl.DataFrame([_from_series(name, frame.iloc[:, place]) for place, name in enumerate(columns)])


def _from_series(name: str, series: Any) -> pl.Series:
    """A column of pandas. What pandas holds as objects are texts, or numbers and gaps."""
    kind = series.dtype.kind
    if kind in "biuf":
        plain = isinstance(series.dtype, np.dtype)
        values = series.to_numpy() if plain else series.to_numpy(dtype=np.float64, na_value=np.nan)
        return pl.Series(name, values, nan_to_null=True)
    if kind in "Mm":
        return pl.Series(name, series.to_numpy())
    return pl.Series(name, series.astype(object).where(series.notna(), None).tolist(), strict=False)
