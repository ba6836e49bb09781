"""Where samples come from: the embedded digits, the classic sets, the user's own file or class."""

from pathlib import Path
from typing import Any

from safari.data.dataset import Dataset
from safari.data.reading import ENDINGS, is_file_name
from safari.data.sources.base import Source
from safari.data.sources.catalog import CATALOG
from safari.data.sources.file import File
from safari.data.sources.nodes import Nodes
from safari.errors import InputError, check
from safari.registry import SOURCES

__all__ = ["CATALOG", "File", "Nodes", "Source", "find_source", "load", "source_class"]


def source_class(text: str) -> type[Source]:
    """The class that a text names: of a named set, of a file, or the user's own.

    Raises:
        InputError: if there is none.
    """
    if is_file_name(text):
        return File
    if text not in SOURCES and ":" not in text:
        known = ", ".join(CATALOG)
        hint = f"must be one of {known}, a file ({', '.join(ENDINGS)}), a folder, or module:Class"
        raise InputError("source", text, hint)
    return SOURCES.find(text, "source")


def find_source(text: str, folder: Path | str | None = None) -> Source:
    """The source that a text names.

    Args:
        text: the name of a data set, the path of a file or folder, or `module:Class`.
        folder: for the named sets: where the published files lie.
    """
    found = source_class(text)
    check(folder is None or text in CATALOG, "folder", folder, f"is for {', '.join(CATALOG)}")
    fields: dict[str, Any] = {"path": text} if found is File else {}
    return found(**fields, **({"folder": folder} if text in CATALOG else {}))


def load(text: str, folder: Path | str | None = None) -> Dataset:
    """Read the data set that a text names, as `find_source` finds it."""
    return find_source(text, folder).load()
