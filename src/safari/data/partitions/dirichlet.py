"""`Dirichlet`: every client has a class mixture of its own."""

import numpy as np

from safari.data.dataset import Dataset
from safari.data.partitions.base import Partition
from safari.data.partitions.sizes import check_sizes, draw_sizes
from safari.errors import check_positive


class Dirichlet(Partition):
    """Each client draws its class mixture from Dirichlet(alpha * shares of the classes).

    Hsu, Qi, Brown: Measuring the Effects of Non-Identical Data Distribution for Federated
    Visual Classification (2019), arXiv:1909.06335. Sizes are drawn first, mixtures second.
    Where a class has run out, the client goes on with what is left of its mixture.

    Args:
        clients: the number of clients, M.
        alpha: the concentration. Small values give clients of few classes; large ones give
            clients that resemble the population.
        samples_per_client: the size of every client; the largest possible if not given.
        size_skew: 0 for clients of one size, otherwise the sigma of log-normal sizes.

    Raises:
        InputError: if a value is out of range, or the data set has too few samples.

    Examples:
        >>> import safari
        >>> narrow = safari.Dirichlet(clients=20, alpha=0.1, samples_per_client=50)
        >>> federation = safari.federate("digits", narrow)
        >>> federation.clients.count.tolist() == [50] * 20
        True
    """

    clients: int = 10
    alpha: float = 0.5
    samples_per_client: int | None = None
    size_skew: float = 0.0

    def __check_init__(self) -> None:
        check_sizes(self.clients, self.samples_per_client, self.size_skew)
        check_positive("alpha", self.alpha)

    def split(self, dataset: Dataset, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        sizes = draw_sizes(self.clients, self.samples_per_client, self.size_skew, pool, rng)
        labels = np.asarray(dataset.y)[pool]
        left = [pool[labels == label].tolist() for label in range(dataset.classes)]
        prior = np.array([len(samples) for samples in left]) / len(pool)
        parts: list[np.ndarray] = [np.empty(0, int)] * self.clients
        # In random order: clients that come late find some classes gone.
        for client in rng.permutation(self.clients):
            mixture = np.zeros(dataset.classes)
            mixture[prior > 0] = rng.dirichlet(np.maximum(self.alpha * prior[prior > 0], 1e-6))
            parts[client] = np.array(_take(left, mixture, int(sizes[client]), rng), int)
        return parts


def _take(left: list[list[int]], mixture: np.ndarray, size: int, rng: np.random.Generator) -> list[int]:
    """Take `size` samples by `mixture` out of `left`, the samples of each class not yet taken."""
    taken: list[int] = []
    while len(taken) < size:
        available = np.array([len(samples) for samples in left])
        weight = np.where(available > 0, mixture, 0.0)
        if weight.sum() < 1e-9:
            weight = available.astype(float)
        wanted = rng.multinomial(size - len(taken), weight / weight.sum())
        for label, count in enumerate(np.minimum(wanted, available)):
            taken += left[label][:count]
            del left[label][:count]
    return taken
