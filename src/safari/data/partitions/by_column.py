"""`ByColumn`: the data set itself says who holds a sample."""

import numpy as np

from safari.data.dataset import Dataset
from safari.data.partitions.base import Partition
from safari.errors import InputError


class ByColumn(Partition):
    """The clients of the data set's own `client` column. No settings.

    Samples that the server has taken are gone from their client.

    Raises:
        InputError: if the data set has no such column, or the server has taken all that a client held.

    Examples:
        >>> import numpy as np
        >>> import safari
        >>> x, y, client = np.ones((9, 1)), np.arange(9) % 3, np.repeat([0, 1], [5, 4])
        >>> dataset = safari.Dataset(x, y, x, y, client=client)
        >>> safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0)).clients.count.tolist()
        [5, 4]
    """

    def split(self, dataset: Dataset, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        if dataset.client is None:
            raise InputError("partition", self, f"{dataset.name} has no client column")
        client = np.asarray(dataset.client)
        pool = np.sort(
            pool
        )  # a client's samples as they lie in its file: a node of a fleet knows no other order
        order = pool[np.argsort(client[pool], kind="stable")]
        counts = np.bincount(client[pool], minlength=client.max() + 1)
        if not counts.min():
            name = dataset.client_names[counts.argmin()] if dataset.client_names else counts.argmin()
            hint = f"client {name} would hold no sample; give the server fewer, or samples of its own"
            raise InputError("partition", self, hint)
        return np.split(order, np.cumsum(counts)[:-1])
