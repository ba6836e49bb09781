"""`Digits`: 1797 images of 8 x 8 pixels that ship inside scikit-learn. No download."""

import gzip
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from safari.data.dataset import Dataset
from safari.data.sources.base import Source
from safari.data.split import hold_out_fifth


class Digits(Source):
    """1,797 handwritten digits of 8 x 8 pixels in ten classes; every fifth one is for testing.

    They ship with scikit-learn, so that they are always there.

    Args:
        folder: not looked at. All named data sets have it, so that one can stand for another.

    Examples:
        >>> import safari
        >>> safari.Digits().load().shape
        (8, 8, 1)
    """

    folder: Path | None = None

    def load(self) -> Dataset:
        return load_digits()


@cache
def load_digits() -> Dataset:
    """The embedded set; read from its file, since importing scikit-learn takes seconds."""
    package = find_spec("sklearn")
    assert package is not None, "scikit-learn is a dependency"
    file = Path(str(package.origin)).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(file, "rt") as text:
        table = np.loadtxt(text, delimiter=",", dtype=np.int32)
    images = table[:, :-1].astype(np.uint8).reshape(-1, 8, 8, 1)
    y = table[:, -1]
    test = hold_out_fifth(y)
    return Dataset(images[~test], y[~test], images[test], y[test], name="digits", scale=1 / 16)
