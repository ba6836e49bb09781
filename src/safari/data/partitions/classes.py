"""`Classes`: every client holds samples of a few classes only."""

import numpy as np

from safari.data.dataset import Dataset
from safari.data.partitions.base import Partition
from safari.data.partitions.sizes import check_enough, check_size, check_sizes, draw_weights
from safari.errors import InputError, check, check_count

REPAIR_TRIES = 10_000


class Classes(Partition):
    """Each client holds `classes_per_client` distinct classes, and each class as many clients.

    A client holds equally many samples of each of its classes, as many as the scarcest class
    allows. What the scarcest class does not allow is left over. Which client holds which
    classes is drawn at random; the numbers of clients of two classes differ by one at the most.

    Args:
        clients: the number of clients, M.
        classes_per_client: the number of classes that a client holds, p.
        samples_per_client: the size of every client, a multiple of `classes_per_client`; the largest
            possible if not given.
        size_skew: 0 for clients of one size, otherwise the sigma of log-normal sizes.

    Raises:
        InputError: if a value is out of range, or the data set has too few classes or samples.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", safari.Classes(clients=20, classes_per_client=2))
        >>> len(set(federation.dataset.y[federation.held_by(0)].tolist()))
        2
    """

    clients: int = 10
    classes_per_client: int = 1
    samples_per_client: int | None = None
    size_skew: float = 0.0

    def __check_init__(self) -> None:
        check_sizes(self.clients, self.samples_per_client, self.size_skew)
        check_count("classes_per_client", self.classes_per_client)

    def split(self, dataset: Dataset, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        check_enough(self.clients, pool)
        check(
            self.classes_per_client <= dataset.classes,
            "classes_per_client",
            self.classes_per_client,
            f"the data has only {dataset.classes} classes",
        )
        holds = assign_classes(self.clients, dataset.classes, self.classes_per_client, rng)
        of_class = _samples_of_classes(dataset, pool)
        share = self._shares(holds, np.array([len(samples) for samples in of_class]), rng)
        parts: list[list[np.ndarray]] = [[] for _ in range(self.clients)]
        for label, samples in enumerate(of_class):
            holders = rng.permutation(np.flatnonzero(holds[:, label]))
            ends = np.cumsum(share[holders])
            for client, end in zip(holders, ends, strict=True):
                parts[client].append(samples[end - share[client] : end])
        return [np.concatenate(part) for part in parts]

    def _shares(self, holds: np.ndarray, available: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """How many samples of each of its classes a client holds."""
        weight = draw_weights(self.clients, self.size_skew, rng)
        unit = min(
            available[label] / max(holds[:, label] @ weight, 1e-9)
            for label in range(len(available))
            if holds[:, label].any()
        )
        if self.samples_per_client is not None:
            largest = int(unit) * self.classes_per_client
            check_size(self.samples_per_client, largest, self.classes_per_client)
            unit = self.samples_per_client / self.classes_per_client
        # The small constant keeps rounding errors from costing a client its last sample.
        share = np.floor(weight * unit + 1e-6).astype(int)
        check(
            share.min() > 0,
            "clients",
            self.clients,
            "too many: one would hold no sample of one of its classes",
        )
        return share


def assign_classes(clients: int, classes: int, per_client: int, rng: np.random.Generator) -> np.ndarray:
    """A random (clients, classes) table of booleans: who holds which class.

    Rows have exactly `per_client` classes; columns differ by one client at the most. A list
    that names every class equally often is shuffled and cut into clients. A class that a
    client then has twice is exchanged with a random client's at random.
    """
    if per_client == classes:
        return np.ones((clients, classes), bool)
    if per_client > classes // 2:
        # Fewer classes a client mean fewer repeated ones: draw the classes that a client lacks.
        return ~assign_classes(clients, classes, classes - per_client, rng)
    names = np.arange(clients * per_client) % classes
    names = rng.permutation(classes)[names]
    assigned = rng.permutation(names).reshape(clients, per_client)
    for _ in range(REPAIR_TRIES):
        ordered = np.sort(assigned, axis=1)
        repeated = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(repeated):
            table = np.zeros((clients, classes), bool)
            table[np.arange(clients)[:, None], assigned] = True
            return table
        for client in repeated.tolist():
            _exchange_repeated(assigned, client, rng)
    raise InputError("classes_per_client", per_client, f"found no balanced assignment to {clients} clients")


def _exchange_repeated(assigned: np.ndarray, client: int, rng: np.random.Generator) -> None:
    """Exchange a repeated class of `client` for a random one of a random client, where both gain."""
    own = assigned[client]
    values, counts = np.unique(own, return_counts=True)
    if counts.max() < 2:
        return
    mine = rng.choice(np.flatnonzero(own == values[counts.argmax()]))
    other, theirs = rng.integers(len(assigned)), rng.integers(assigned.shape[1])
    if assigned[other, theirs] not in own and own[mine] not in assigned[other]:
        assigned[client, mine], assigned[other, theirs] = assigned[other, theirs], assigned[client, mine]


def _samples_of_classes(dataset: Dataset, pool: np.ndarray) -> list[np.ndarray]:
    """The sample numbers of each class, in the order of the pool; no class may be without."""
    labels = np.asarray(dataset.y)[pool]
    found = [pool[labels == label] for label in range(dataset.classes)]
    empty = [label for label, samples in enumerate(found) if not len(samples)]
    check(
        not empty,
        "source",
        f"class {empty[:1]}",
        "has no training sample for the clients; number classes without gaps",
    )
    return found
