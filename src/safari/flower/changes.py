"""The change that a client's reply asks for: how long it is, and whether it goes the server's way.

Counters, such as those of batch norms, are left out.
"""

from collections.abc import Iterator

import numpy as np
from flwr.app import ArrayRecord

from safari.flower.arrays import Arrays


def length_of(sent: ArrayRecord, got: ArrayRecord) -> float:
    """The length of the change from `sent` to `got`."""
    return sum(float(np.sum(part**2)) for _, part in _parts(sent, got)) ** 0.5


def cosine_of(sent: ArrayRecord, got: ArrayRecord, own: Arrays) -> float:
    """The cosine of the angle between the change from `sent` to `got` and the change `own`.

    0 if one of them is no change at all.
    """
    product, square, other = 0.0, 0.0, 0.0
    for name, part in _parts(sent, got):
        mine = own[name].astype(np.float64)
        product += float(np.sum(part * mine))
        square += float(np.sum(part**2))
        other += float(np.sum(mine**2))
    lengths = (square * other) ** 0.5
    return product / lengths if lengths > 0 else 0.0


def _parts(sent: ArrayRecord, got: ArrayRecord) -> Iterator[tuple[str, np.ndarray]]:
    for name, array in got.items():
        values = array.numpy()
        if np.issubdtype(values.dtype, np.floating):
            yield name, values.astype(np.float64) - sent[name].numpy()
