"""Digits: 1797 images of 8 x 8 pixels that ship inside scikit-learn. No download."""

import numpy as np

from safari.data.dataset import Dataset
from safari.data.sources.split import hold_out_fifth


def load_digits() -> Dataset:
    from sklearn.datasets import load_digits as embedded

    bunch = embedded()
    x = bunch.images.astype(np.uint8)[..., None]
    x, y, x_test, y_test, _ = hold_out_fifth(x, bunch.target.astype(np.int32))
    return Dataset(x, y, x_test, y_test, name="digits", scale=1 / 16)
