"""Files of tables by their endings, and folders that hold one file a client."""

import codecs
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data.reading.frames import read_frame
from safari.data.reading.options import CLIENT, Options
from safari.data.samples import Samples, numbered
from safari.errors import InputError, check

LONGEST_HEADER = 1 << 20
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""What a packed file begins with; polars unpacks it, whatever it is called."""
NOT_UTF_8 = "it is not UTF-8; save it as such, in Excel as CSV UTF-8"
SAID = {
    "invalid utf-8": NOT_UTF_8,
    "found more fields than defined": "a row has more values than the first line has names",
}
"""What polars says, and what users understand."""
LOOKED_AT = 10_000
"""So many rows are looked at to find out what kind a column is; all of them where that goes wrong."""


def _separated(path: Path, texts: tuple[str, ...]) -> pl.DataFrame:
    """Labels and clients are read as texts, so that a name such as 007 stays what it is."""
    kept = {name: pl.String for name in texts if name in header(path)}
    # Where semicolons stand between values, a comma may stand in numbers.
    mark = separator(path)
    settings: dict[str, Any] = {"separator": mark, "decimal_comma": mark == ";", "schema_overrides": kept}
    try:
        frame = pl.read_csv(path, infer_schema_length=LOOKED_AT, **settings)
    except pl.exceptions.ComputeError:  # what kind a column is shows further down
        frame = pl.read_csv(path, infer_schema_length=None, **settings)
    return _without_empty_end(frame)


def header(path: Path) -> list[str]:
    """The columns of a file of separated values."""
    return pl.read_csv(path, separator=separator(path), n_rows=0).columns


def separator(path: Path) -> str:
    """What stands between the values: a comma or tab, as the ending says, or what the first line shows."""
    with path.open("rb") as file:
        first = file.readline(LONGEST_HEADER)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(NOT_UTF_8)
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    if first.startswith(PACKED):
        return usual
    return next((mark for mark in (usual, ";", "\t", "|") if mark.encode() in first), usual)


def _without_empty_end(frame: pl.DataFrame) -> pl.DataFrame:
    """The same without the empty lines at its end, which spreadsheets leave."""
    held = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    return frame.head(int(held.arg_true()[-1]) + 1 if held.any() else 0)


def _arrow(path: Path, texts: tuple[str, ...]) -> pl.DataFrame:
    try:
        return pl.read_ipc(path)
    except pl.exceptions.PolarsError:
        return pl.read_ipc_stream(path)


def _parquet(path: Path, texts: tuple[str, ...]) -> pl.DataFrame:
    return pl.read_parquet(path)


FORMATS: dict[str, Callable[[Path, tuple[str, ...]], pl.DataFrame]] = {
    ".csv": _separated,
    ".tsv": _separated,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".ipc": _arrow,
    ".feather": _arrow,
}


def open_table(path: Path, options: Options) -> pl.DataFrame:
    """The table in a file.

    Raises:
        InputError: if it is not there or cannot be read.
    """
    check(path.is_file(), options.key, str(path), "no such file")
    texts = tuple(
        name for name in (options.label or "label", options.client or CLIENT) if isinstance(name, str)
    )
    try:
        return FORMATS[path.suffix.lower()](path, texts)
    except pl.exceptions.NoDataError:
        raise InputError(options.key, str(path), "is empty") from None
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        said = next((ours for theirs, ours in SAID.items() if theirs in str(error)), str(error))
        said = " ".join(said.split())[:120]
        raise InputError(options.key, str(path), f"cannot be read as {path.suffix[1:]} ({said})") from None


def read_table_file(path: Path, options: Options) -> Samples:
    """The samples in a file."""
    return read_frame(open_table(path, options), options, path.stem, path.name)


def read_folder(folder: Path, options: Options) -> Samples:
    """The samples in a folder of files.

    Each file holds one client, who is called as the file is, unless `options` name a column of clients that
    the files have, or want none: then the files are parts of one table.
    """
    files = {path.stem: path for path in table_files(folder)}
    check(len(files) == len(table_files(folder)), options.key, str(folder), "has two files of one name")
    clients = numbered(list(files))
    frames = {client: open_table(files[client], options) for client in clients}
    columns = list(dict.fromkeys(name for frame in frames.values() for name in frame.columns))
    options.check_dropped(columns, folder.name)
    # The files of clients need not say whose they are, though a test file of all clients does.
    by_file = options.client is None or (isinstance(options.client, str) and options.client not in columns)
    inside = replace(options, extra=True)
    parts = [
        read_frame(
            frame.drop(CLIENT, strict=False) if by_file else frame,
            inside,
            client,
            f"{folder.name}/{files[client].name}",
        )
        for client, frame in frames.items()
    ]
    whole = joined(parts, folder.name, replace(options, client=None) if by_file else options)
    if by_file:
        sizes = [len(part) for part in parts]
        holder = np.repeat(np.arange(len(clients), dtype=np.int32), sizes)
        whole = replace(whole, client=holder, clients=clients)
    return options.finish(whole)


def joined(parts: list[Samples], name: str, options: Options) -> Samples:
    """Samples of one kind, one after another, with all their classes and clients."""
    labels = options.labels or numbered(list({label for part in parts for label in part.labels}))
    alike = [part.like(replace(parts[0], labels=labels), options.key) for part in parts]
    said = f'every sample has the label "{labels[0]}"; two classes are needed'
    check(options.extra or len(labels) > 1, options.key, name, said)
    x, y = (np.concatenate([getattr(part, which) for part in alike]) for which in ("x", "y"))
    whole = replace(parts[0], x=x, y=y, labels=labels, client=None, clients=None, name=name, origin=name)
    if any(part.clients is None for part in parts):
        hint = (
            f"is a column that not all files of {name} have; each needs it, or none if each file is a client"
        )
        check(not isinstance(options.client, str) or options.extra, "client", options.client, hint)
        return whole
    clients = numbered(list({client for part in parts for client in part.clients or ()}))
    place = {client: number for number, client in enumerate(clients)}
    holders = [np.array([place[one] for one in part.clients or ()])[part.client] for part in parts]
    return replace(whole, client=np.concatenate(holders).astype(np.int32), clients=clients)


def table_files(folder: Path) -> list[Path]:
    """The files of tables in a folder."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in FORMATS and path.name[0] != ".")
