"""The user's own data: one .npz file with x, y and, if wanted, client, x_test, y_test."""

import zipfile
from pathlib import Path

import numpy as np

from safari.data.dataset import Dataset, checked_clients, checked_samples
from safari.data.sources.split import hold_out_fifth
from safari.errors import InputError, check

REQUIRED = ("x", "y")
OPTIONAL = ("client", "x_test", "y_test")


def load_npz(path: Path) -> Dataset:
    check(path.is_file(), "source", str(path), "no such file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (zipfile.BadZipFile, ValueError, OSError, EOFError) as error:
        raise InputError("source", str(path), f"cannot be read as .npz ({error})") from None
    missing = [key for key in REQUIRED if key not in arrays]
    check(not missing, "source", str(path), f"lacks {' and '.join(missing)}; it has {', '.join(arrays)}")
    unknown = [key for key in arrays if key not in REQUIRED + OPTIONAL]
    check(not unknown, "source", str(path), f"has {unknown[:1]}; known are {', '.join(REQUIRED + OPTIONAL)}")
    check(
        ("x_test" in arrays) == ("y_test" in arrays),
        "source",
        str(path),
        "needs x_test and y_test, or neither",
    )
    x, y = checked_samples("x", arrays["x"], "y", arrays["y"])
    client = arrays.get("client")
    if client is not None:
        client = checked_clients(client, len(x))
    if "x_test" in arrays:
        x_test, y_test = arrays["x_test"], arrays["y_test"]
    else:
        x, y, x_test, y_test, client = hold_out_fifth(x, y, client)
        check(
            len(y_test) > 0, "source", str(path), "is too small to hold a test set out; add x_test and y_test"
        )
    return Dataset(x, y, x_test, y_test, name=path.stem, client=client)
