"""Columns without a single value: they are filled as any gap is, which may not be what was meant."""

from collections.abc import Sequence

import numpy as np

from safari.errors import warn


def warn_of_empty_columns(x: np.ndarray, features: Sequence[str] | None, origin: str) -> None:
    """Name the features of which no sample has a value; where none may be missing, they were refused."""
    if x.ndim != 2 or not len(x) or x.dtype.kind != "f":
        return
    places = np.flatnonzero(np.isnan(x).all(axis=0))
    if not len(places):
        return
    names = ", ".join(str(place) if features is None else features[place] for place in places.tolist())
    columns = f"column {names} has" if len(places) == 1 else f"columns {names} have"
    rows = "its only row" if len(x) == 1 else f"any of its {len(x)} rows"
    warn(f"{origin}: {columns} no value in {rows}; the mean of the server's samples stands for it")
