"""MNIST and Fashion-MNIST in their published layout: four IDX files, gzipped or plain."""

import gzip
import zlib
from pathlib import Path

import numpy as np

from safari.data.dataset import Dataset
from safari.errors import InputError, check

FILES = {
    "x": "train-images-idx3-ubyte",
    "y": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def present(folder: Path) -> bool:
    return all(_path(folder, stem).exists() for stem in FILES.values())


def load_idx(folder: Path, name: str) -> Dataset:
    arrays = {key: read_idx(_path(folder, stem)) for key, stem in FILES.items()}
    for key in ("x", "x_test"):
        arrays[key] = arrays[key][..., None]
    return Dataset(arrays["x"], arrays["y"], arrays["x_test"], arrays["y_test"], name=name)


def read_idx(path: Path) -> np.ndarray:
    """One IDX file of unsigned bytes: zero, zero, type 8, dimensions, sizes, values."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, OSError, zlib.error) as error:
        raise InputError("folder", str(path), f"cannot be read ({error}); fetch it again") from None
    check(len(raw) >= 4 and raw[:3] == b"\0\0\x08", "folder", str(path), "is not an IDX file of bytes")
    dimensions = raw[3]
    head = 4 + 4 * dimensions
    shape = np.frombuffer(raw[4:head], ">u4").astype(int)
    expected = int(np.prod(shape))
    check(
        len(shape) == dimensions and len(raw) - head == expected,
        "folder",
        str(path),
        f"is damaged: {expected} values announced, {len(raw) - head} there",
    )
    return np.frombuffer(raw, np.uint8, offset=head).reshape(shape)


def _path(folder: Path, stem: str) -> Path:
    packed = folder / f"{stem}.gz"
    return packed if packed.exists() else folder / stem
