"""The test set of a source that has none of its own."""

import numpy as np


def hold_out_fifth(
    x: np.ndarray, y: np.ndarray, client: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Every fifth sample of each class becomes the test set: fixed, whatever the seed."""
    rank = np.empty(len(y), np.int64)
    for label in np.unique(y):
        mine = np.flatnonzero(y == label)
        rank[mine] = np.arange(len(mine))
    test = rank % 5 == 4
    return x[~test], y[~test], x[test], y[test], None if client is None else client[~test]
