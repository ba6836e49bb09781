"""Data sets of other libraries: Hugging Face's, and map-style ones of PyTorch. None is imported here."""

from typing import Any

import numpy as np
import polars as pl

from safari.data.reading.arrays import read_arrays
from safari.data.reading.frames import read_frame
from safari.data.reading.images import stacked
from safari.data.reading.options import Options
from safari.data.samples import Samples
from safari.errors import InputError, check


def read_hugging_face(data: Any, options: Options) -> Samples:
    """The samples of a `datasets.Dataset`: a table, or images beside labels."""
    kind = type(data).__name__
    if kind.endswith("Dict"):
        raise InputError("data", kind, f'holds splits; give one of them, such as data["{next(iter(data))}"]')
    check(
        hasattr(data, "column_names") and hasattr(data, "__len__"), "data", kind, "must be a datasets.Dataset"
    )
    check(len(data) > 0, "data", kind, "has no row")
    names = {name: getattr(feature, "names", None) for name, feature in data.features.items()}
    pictures = [name for name, feature in data.features.items() if type(feature).__name__ == "Image"]
    table = data.remove_columns(pictures).with_format("arrow")[:]
    frame = pl.DataFrame(pl.from_arrow(table))
    frame = frame.with_columns(
        pl.col(name).replace_strict(dict(enumerate(known)), default=None, return_dtype=pl.String)
        for name, known in names.items()
        if known is not None and name in frame.columns
    )
    if not pictures:
        return read_frame(frame, options, "hugging-face", "the data set")
    check(len(pictures) == 1, "data", kind, f"has more than one column of images: {', '.join(pictures)}")
    plain = data.with_format(None)
    rows = [f"row {row + 1}" for row in range(len(data))]
    x = stacked((plain[row][pictures[0]] for row in range(len(data))), rows, "data")
    label = options.label_column(frame.columns, "the data set")
    client = options.client_column(frame.columns, "the data set")
    return read_arrays(x, frame[label], None if client is None else frame[client], options, "the data set")


def read_torch(data: Any, client: Any, options: Options) -> Samples:
    """The samples of a map-style `torch.utils.data.Dataset`: its items are (x, y) or (x, y, client).

    Images that are tensors have their channels first, as PyTorch has them; here they come last.
    """
    kind = type(data).__name__
    sized = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    check(sized, "data", kind, "must be a map-style data set: with a length, and items by their numbers")
    check(len(data) > 0, "data", kind, "has no sample")
    columns = _columns(data)
    hint = f"its items must be (x, y) or (x, y, client), not {len(columns)} things"
    check(len(columns) in (2, 3), "data", kind, hint)
    if len(columns) == 3 and client is None:
        client = columns[2]
    return read_arrays(columns[0], columns[1], None if client is False else client, options, "the data set")


def _columns(data: Any) -> list[Any]:
    if type(data).__name__ == "TensorDataset":
        tensors = [np.asarray(tensor) for tensor in data.tensors]
        return [np.moveaxis(tensors[0], 1, -1) if tensors[0].ndim == 4 else tensors[0], *tensors[1:]]
    items = [data[number] for number in range(len(data))]
    check(isinstance(items[0], tuple | list), "data", type(data).__name__, "its items must be (x, y)")
    first, *others = zip(*items, strict=True)
    if hasattr(first[0], "getpixel"):
        return [stacked(first, [f"item {place}" for place in range(len(first))], "data"), *map(list, others)]
    return [np.stack([_channels_last(one) for one in first]), *map(np.asarray, others)]


def _channels_last(one: Any) -> np.ndarray:
    array = np.asarray(one)
    return np.moveaxis(array, 0, -1) if array.ndim == 3 and not isinstance(one, np.ndarray) else array
