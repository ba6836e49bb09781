"""Tables: a row a sample, a column a feature, and one for the labels, one for the clients."""

import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import polars as pl

from safari.data.dataset import MOST_CLASSES
from safari.data.reading.empty import warn_of_empty_columns
from safari.data.reading.options import Options
from safari.data.samples import Samples, numbered, texts
from safari.errors import InputError, check

ABSENT = ("", "na", "n/a", "nan", "null", "none", "?", "-", "--", ".", "#n/a", "#div/0!", "#value!", "#num!")
"""What tables write where a number is missing, in small letters."""
MOST_VALUES = 20
"""A column of texts with no more values than this holds categories."""
REPEATS = 5
"""Names occur again: numbers with fractions that occur less often than so on average are measurements."""


def read_frame(frame: pl.DataFrame, options: Options, name: str, origin: str) -> Samples:
    """The samples of a table.

    Args:
        frame: the table.
        options: which column is what.
        name: what the samples will be called.
        origin: where the table comes from, in messages.

    Raises:
        InputError: naming column and row, if a value cannot be used.
    """
    check(frame.height > 0, options.key, origin, "has no row")
    check_columns(frame.columns, options.key, origin)
    label = options.label_column(frame.columns, origin)
    client = options.client_column(frame.columns, origin)
    check(client != label, "client", client, "is the column of the labels")
    features = options.feature_columns(frame.columns, (label, client), origin)
    y, labels = coded(frame[label], options, origin, options.labels)
    check(
        options.extra or len(labels) > 1,
        "label",
        label,
        f'every row of {origin} has the label "{labels[0]}"; two classes are needed',
    )
    holder, clients = (None, None) if client is None else coded(frame[client], options, origin)
    x = matrix(frame, features, options, origin)
    if options.key != "server":  # there it is refused further on: no mean is known
        warn_of_empty_columns(x, features, origin)
    found = Samples(x, y, labels, holder, clients, tuple(features), name, origin)
    return options.finish(found)


def check_columns(columns: Sequence[str], key: str, origin: str) -> None:
    """Refuse a table that has a column twice; the reader of CSV files gives the second another name."""
    for name in columns:
        first, mark, number = name.rpartition("_duplicated_")
        twice = bool(mark) and number.isdigit() and first in columns
        check(not twice, key, origin, f"has column {first} twice")
        hint = "has a column without a name; give it one (pandas writes such a column without index=False)"
        check(bool(name.strip()), key, origin, hint)


def coded(
    column: pl.Series, options: Options, origin: str, names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """A column of names as numbers, and the names by their numbers (`names`, where they are known)."""
    texts = _as_texts(column, options, origin)
    if texts.null_count():
        row = int(texts.is_null().arg_max() or 0) + 1
        _refuse(column.name, row, origin, options, "is empty; every sample needs a value there")
    found = texts.unique().to_list()
    _check_names(found, texts, options, origin)
    if names is None:
        most = f"has {len(found)} different values; {MOST_CLASSES} at the most can be told apart"
        check(len(found) <= MOST_CLASSES or column.name != options.label, "label", column.name, most)
        names = numbered(found)
    for unknown in sorted(set(found) - set(names)):
        row = int((texts == unknown).arg_max() or 0) + 1
        _refuse(
            column.name,
            row,
            origin,
            options,
            f'holds "{unknown}", which is none of labels: {", ".join(names)}',
        )
    numbers = texts.cast(pl.Enum(list(names))).to_physical().to_numpy()
    return numbers.astype(np.int32), names


def _check_names(found: list[str], texts: pl.Series, options: Options, origin: str) -> None:
    """Refuse measurements in the place of names: fractions of which few occur again."""
    numbers = pl.Series(found, dtype=pl.String).cast(pl.Float64, strict=False)
    between = [name for name, number in zip(found, numbers, strict=True) if number and number % 1]
    if between and not numbers.null_count() and len(texts) < REPEATS * len(found):
        row = int(texts.is_in(between).arg_max() or 0) + 1
        many = f"{len(found)} different values in {len(texts)} rows are measurements, not names"
        said = f"holds {texts[row - 1]}; {many}: write texts or whole numbers"
        _refuse(texts.name, row, origin, options, said)


def _as_texts(column: pl.Series, options: Options, origin: str) -> pl.Series:
    kind = column.dtype
    if kind.is_float():
        column = column.fill_nan(None)
        whole = column.drop_nulls()
        column = column.cast(pl.Int64) if (whole.is_finite() & (whole == whole.floor())).all() else column
    elif not (kind.is_integer() or kind in (pl.String, pl.Boolean, pl.Categorical, pl.Enum)):
        raise InputError(
            options.key, origin, f"column {column.name} holds {_kind(kind)}, not texts or numbers"
        )
    texts = column.cast(pl.String).str.strip_chars().replace("", None)
    # Programs that write numbers with gaps, or with fractions among them, write 1 as 1.0.
    numbers = texts.str.contains(r"^[+-]?\d+(\.\d+)?$")
    return texts.str.replace(r"\.0+$", "") if numbers.drop_nulls().all() else texts


def matrix(frame: pl.DataFrame, features: Sequence[str], options: Options, origin: str) -> np.ndarray:
    """The features as float32, NaN where a value is missing and may be."""
    columns = [_numbers(frame, name, features, options, origin) for name in features]
    x = np.empty((frame.height, len(columns)), np.float32)
    for place, column in enumerate(columns):
        with np.errstate(over="ignore"):
            x[:, place] = column.cast(pl.Float64).to_numpy().astype(np.float32)
        if np.isinf(x[:, place]).any():
            row = int(np.isinf(x[:, place]).argmax()) + 1
            said = f"holds {column[row - 1]}, which is not a finite number; {_without(column.name)}"
            _refuse(column.name, row, origin, options, said)
        if options.missing is None and np.isnan(x[:, place]).any():
            row = int(np.isnan(x[:, place]).argmax()) + 1
            mean = 'write missing = "mean" for the mean of the server\'s samples'
            said = f"has no value; {mean}, or {_without(column.name)}"
            _refuse(column.name, row, origin, options, said)
    return x


def _numbers(
    frame: pl.DataFrame, name: str, features: Sequence[str], options: Options, origin: str
) -> pl.Series:
    """A column of numbers; texts that are numbers count as such."""
    column = frame[name]
    kind = column.dtype
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return column.cast(pl.Float64) if kind == pl.Null else column
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        raise InputError(
            options.key, origin, f"column {column.name} holds {_kind(kind)}; {_without(column.name)}"
        )
    texts = _present(column)
    numbers = texts.cast(pl.Float64, strict=False)
    broken = texts.is_not_null() & numbers.is_null()
    if broken.any():
        row = int(broken.arg_max() or 0) + 1
        said = f'holds the text "{texts[row - 1]}"; {_as_number(texts, texts[row - 1])}'
        others = [one for one in features if one != name and _holds_texts(frame[one])]
        said += f", or {_without(name, *others)}"
        _refuse(column.name, row, origin, options, said)
    return numbers


def _present(column: pl.Series) -> pl.Series:
    """A column of texts, null where what it holds marks a missing value."""
    texts = column.cast(pl.String).str.strip_chars()
    return texts.set(texts.str.to_lowercase().is_in(list(ABSENT)), None)


def _holds_texts(column: pl.Series) -> bool:
    """Whether nothing in a column is a number."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return False
    texts = _present(column).drop_nulls()
    return len(texts) > 0 and bool(texts.cast(pl.Float64, strict=False).is_null().all())


def _as_number(texts: pl.Series, text: str) -> str:
    """What to do with a column that holds this text."""
    if re.fullmatch(r"[-+]?[\d.,\s]+", text):
        return "write numbers with a point, and with nothing between their digits"
    if re.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", text):
        return "turn the date into a number, such as years"
    values = texts.drop_nulls().n_unique()
    if 1 < values <= MOST_VALUES and values < len(texts):
        return f"make a column of 0 and 1 of each of its {values} values (pandas.get_dummies)"
    return "turn it into a number"


def _refuse(column: str, row: int, origin: str, options: Options, what: str) -> NoReturn:
    raise InputError(options.key, origin, f"column {column}, row {row} {what}")


def _without(*columns: str) -> str:
    what = "the column" if len(columns) == 1 else "all columns of texts"
    return f"leave {what} out with drop = {texts(columns)}"


def _kind(kind: Any) -> str:
    return "dates or times" if kind.is_temporal() else f"values of type {kind}"
