"""Where samples come from: the embedded digits, the classic sets, the user's own file."""

from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.sources.catalog import CATALOG
from safari.data.sources.npz import load_npz
from safari.errors import InputError

__all__ = ["CATALOG", "load"]


def load(source: str, folder: str | None = None) -> Dataset:
    """Read `source`: a name of the catalog, or the path of an .npz file.

    `folder` is where the published files lie; without it `SAFARI_DATA`, then the cache
    that `safari data fetch` fills.
    """
    if source in CATALOG:
        return CATALOG[source].load(folder)
    if source.endswith(".npz"):
        return load_npz(Path(source))
    raise InputError("source", source, f"must be one of {', '.join(CATALOG)}, or the path of an .npz file")
