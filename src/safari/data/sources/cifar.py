"""CIFAR-10 in its published layouts: the binary batches and the Python batches."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from safari.data.dataset import Dataset
from safari.errors import InputError, check

TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
MEAN = np.array([0.4914, 0.4822, 0.4465])
DEVIATION = np.array([0.2470, 0.2435, 0.2616])


def present(folder: Path) -> bool:
    return _complete(folder, ".bin") or _complete(folder, "")


def load_cifar10(folder: Path) -> Dataset:
    read, suffix = (read_binary, ".bin") if _complete(folder, ".bin") else (read_python, "")
    parts = [read(folder / f"{batch}{suffix}") for batch in TRAIN]
    x, y = (np.concatenate(column) for column in zip(*parts, strict=True))
    x_test, y_test = read(folder / f"{TEST}{suffix}")
    return Dataset(
        x, y, x_test, y_test,
        name="cifar10", scale=1 / (255 * DEVIATION), shift=MEAN / DEVIATION, augment=True,
    )  # fmt: skip


def read_binary(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Records of 3073 bytes: the label, then the red, green and blue planes."""
    raw = np.frombuffer(path.read_bytes(), np.uint8)
    check(
        len(raw) > 0 and len(raw) % 3073 == 0,
        "folder",
        str(path),
        f"is damaged: {len(raw)} bytes are not records of 3073",
    )
    records = raw.reshape(-1, 3073)
    return _images(records[:, 1:]), records[:, 0].astype(np.int32)


def read_python(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The pickled dictionary of the Python version, read without running foreign code."""
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="bytes").load()
        return _images(np.asarray(content[b"data"], np.uint8)), np.asarray(content[b"labels"], np.int32)
    except (pickle.UnpicklingError, EOFError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise InputError("folder", str(path), f"is not a CIFAR-10 batch ({error})") from None


class _ArraysOnly(pickle.Unpickler):
    """Unpickles NumPy arrays and plain values; any other object is refused."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct", "ndarray", "dtype", "_codecs", "encode", "scalar"}
        if module.split(".")[0] in ("numpy", "_codecs") and name in allowed:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        raise pickle.UnpicklingError(f"it wants {module}.{name}")


def _images(planes: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _complete(folder: Path, suffix: str) -> bool:
    return all((folder / f"{batch}{suffix}").exists() for batch in (*TRAIN, TEST))
