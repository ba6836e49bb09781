"""Paths in a spec: relative to its file, whatever folder a command runs in."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from safari.data.reading import is_file_name

PATHS = (
    "data.source",
    "data.server",
    "data.test",
    "data.folder",
    "participation.availability.file",
    "train.start",
)
"""Keys that may hold a path."""


def with_whole_paths(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The tables of a spec that lies in `folder`, with whole paths, also in the grid of a sweep."""
    for key in PATHS:
        whole = partial(_whole, folder, key)
        for place in (key, f"sweep.grid.{key}"):
            given = _replaced(given, place.split("."), whole)
    return given


def _replaced(table: Any, names: list[str], by: Callable[[Any], Any]) -> Any:
    first, *rest = names
    if not isinstance(table, dict) or first not in table:
        return table
    return {**table, first: _replaced(table[first], rest, by) if rest else by(table[first])}


def _whole(folder: Path, key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(folder, key, one) for one in value]
    if not isinstance(value, str) or os.path.isabs(value):
        return value
    named = key == "data.source" and not is_file_name(value, folder)
    return value if named else os.path.abspath(folder / value)
