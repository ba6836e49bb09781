"""Classes that no score will ever show, which may be slips in the labels."""

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from safari.data.dataset import Dataset
from safari.errors import warn

FEW = 5
"""A class with fewer samples has none in a test set that is every fifth of them."""


def warn_of_lone_classes(dataset: Dataset, server: np.ndarray) -> None:
    """Name each class of few samples of which neither the server (these samples) nor the test set has one."""
    y = np.asarray(dataset.y)
    all_of, at_server, tested = (
        np.bincount(labels, minlength=dataset.classes)
        for labels in (y, y[server], np.asarray(dataset.y_test))
    )
    for number in np.flatnonzero((all_of > 0) & (all_of < FEW) & (at_server == 0) & (tested == 0)):
        name, count = dataset.labels[number], int(all_of[number])
        held = f"{count} sample{'' if count == 1 else 's'}"
        warn(
            f"class {name} has {held}, none at the server and none in the test set, so that no score shows it"
            f"{_meant(name, dataset.labels)}"
        )


def _meant(name: str, names: Sequence[str]) -> str:
    others = {other.casefold(): other for other in names if other != name and not other.isdigit()}
    near = get_close_matches(name.casefold(), others, n=1, cutoff=0.8)
    return f"; is it meant to be {others[near[0]]}?" if near else ""
