"""`ServerSet`: the server's own labelled samples, drawn from the whole population or skewed."""

import numpy as np

from safari.data.dataset import Dataset
from safari.errors import InputError, check, check_not_negative, check_positive, unknown_name
from safari.randomness import host_stream
from safari.registry import Noun


class ServerSet(Noun):
    """The server's own labelled samples, T.

    Without skew T is i.i.d. from the population, and the set of fewer samples is a part of
    the set of more: sizes can be compared under one seed. `missing_classes` and `alpha` make
    T's distribution P' differ from the population's P.

    Args:
        samples: the number of samples, n_T.
        disjoint: whether the samples are taken away from the clients. A server's samples are
            not its clients' private ones, and counting a sample on both sides would flatter the server.
        missing_classes: classes of which the server has no sample.
        alpha: draws the server's class mixture from Dirichlet(alpha * shares of the classes).
        clients: the clients whose samples are drawn from, by name (default: the whole population, also
            clients that never take part). Only where the data say who holds a sample.

    Raises:
        InputError: if a value is out of range, or the data set has too few samples.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", server=safari.ServerSet(50, missing_classes=(0, 1)))
        >>> federation.server_samples
        50
        >>> sorted(set(federation.dataset.y[federation.held_by(None)].tolist()))
        [2, 3, 4, 5, 6, 7, 8, 9]
    """

    samples: int = 100
    disjoint: bool = True
    missing_classes: tuple[int, ...] = ()
    alpha: float | None = None
    clients: tuple[str, ...] | None = None

    def __check_init__(self) -> None:
        check_not_negative("samples", self.samples)
        if self.alpha is not None:
            check_positive("alpha", self.alpha)

    def draw(self, dataset: Dataset, rng: np.random.Generator) -> np.ndarray:
        """The sample numbers of the server's set.

        Args:
            dataset: the population; only its training samples are drawn from.
            rng: the random generator to draw from.

        Returns:
            `samples` different sample numbers, in random order.

        Raises:
            InputError: if the data set has too few samples, or not the classes that are to be missing.
        """
        labels, highest = np.asarray(dataset.y), dataset.classes - 1
        for label in self.missing_classes:
            check(0 <= label <= highest, "missing_classes", label, f"must be classes from 0 to {highest}")
        order = rng.permutation(len(labels))
        order = order[~np.isin(labels[order], self.missing_classes)]
        if self.clients is not None:
            numbers = self._numbers(dataset)
            order = order[np.isin(np.asarray(dataset.client)[order], numbers)]
        check(
            self.samples <= len(order),
            "samples",
            self.samples,
            f"the data has only {len(order)} samples to draw from",
        )
        if self.alpha is None:
            return order[: self.samples]
        return self._draw_skewed(order, labels[order], dataset.classes, self.alpha, rng)

    def _numbers(self, dataset: Dataset) -> list[int]:
        """The numbers of the clients that are drawn from."""
        names = dataset.client_names
        if names is None:
            hint = "needs data that say who holds a sample, such as a table with a column of clients"
            raise InputError("clients", self.clients, hint)
        for name in self.clients or ():
            check(name in names, "clients", name, unknown_name(name, names, "client"))
        return [names.index(name) for name in self.clients or ()]

    def _draw_skewed(
        self, order: np.ndarray, labels: np.ndarray, classes: int, alpha: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Samples of `order`, whose labels are `labels`, by a random mixture of the classes."""
        available = np.bincount(labels, minlength=classes)
        share = available[available > 0] / len(order)
        mixture = np.zeros(classes)
        mixture[available > 0] = rng.dirichlet(np.maximum(alpha * share, 1e-6))
        counts = rng.multinomial(self.samples, mixture)
        short = np.flatnonzero(counts > available)
        if len(short):
            raise InputError(
                "alpha",
                alpha,
                f"this draw asks for {counts[short[0]]} samples of class {short[0]}, which has "
                f"{available[short[0]]}; take a larger alpha, fewer samples or another seed",
            )
        chosen = np.concatenate([order[labels == label][:count] for label, count in enumerate(counts)])
        return rng.permutation(chosen)


def split_held_out(
    samples: np.ndarray, labels: np.ndarray, share: float, fold: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """The server's samples apart: those to train on, and a `share` of each class that is held out.

    The last samples of a class are held out, or in another `fold` those before them; the samples come in
    random order. Shares are rounded so that they add up over the classes, and every class keeps a sample
    to train on.
    """
    out = np.zeros(len(samples), bool)
    owed = 0.0
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        owed += share * len(mine)
        count = min(round(owed), len(mine) - 1)
        owed -= count
        mine = np.roll(mine, round(fold * share * len(mine)))
        out[mine[len(mine) - count :]] = True
    return samples[~out], samples[out]


def server_stream(seed: int) -> np.random.Generator:
    """What draws and orders the server's samples: the same in a simulation and at a fleet's server."""
    return host_stream(seed, "server set")
