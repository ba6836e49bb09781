"""`IID`: every client's samples follow the population."""

import numpy as np

from safari.data.dataset import Dataset
from safari.data.partitions.base import Partition
from safari.data.partitions.sizes import check_sizes, draw_sizes


class IID(Partition):
    """Independent and identically distributed clients: a random part of the samples each.

    Args:
        clients: the number of clients, M.
        samples_per_client: the size of every client; the largest possible if not given.
        size_skew: 0 for clients of one size, otherwise the sigma of log-normal sizes.

    Raises:
        InputError: if a value is out of range, or the data set has too few samples.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", safari.IID(clients=4, samples_per_client=300))
        >>> federation.clients.count.tolist()
        [300, 300, 300, 300]
    """

    clients: int = 10
    samples_per_client: int | None = None
    size_skew: float = 0.0

    def __check_init__(self) -> None:
        check_sizes(self.clients, self.samples_per_client, self.size_skew)

    def split(self, dataset: Dataset, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        sizes = draw_sizes(self.clients, self.samples_per_client, self.size_skew, pool, rng)
        return np.split(pool[: sizes.sum()], np.cumsum(sizes)[:-1])
