"""`ClientMetrics`: how good a model is on each client's own samples, and how far clients lie apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

MOST_LISTED = 1000
"""A summary lists no more clients than this, and above them only how far they lie apart."""
QUANTILES = {"worst": 0.0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, "best": 1.0}
SPREAD = tuple(f"{name}_client_accuracy" for name in QUANTILES)


@dataclass(frozen=True, eq=False, repr=False)
class ClientMetrics:
    """How good a model is on the samples of each client; clients without any are left out.

    Attributes:
        clients: the names of the clients.
        samples: by client, how many samples there are.
        accuracy: by client, the share that the model gets right.
        balanced_accuracy: by client, the mean recall over the classes that it has samples of.
        loss: by client, the mean cross entropy.
        takes_part: by client, whether it can ever take part in training; None where that is not known.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", client_test=0.2)
        >>> clients = safari.train(federation, rounds=5).metrics.clients
        >>> len(clients.clients), clients.spread()["worst_client_accuracy"] == min(clients.accuracy)
        (10, True)
    """

    clients: tuple[str, ...]
    samples: tuple[int, ...]
    accuracy: tuple[float, ...]
    balanced_accuracy: tuple[float, ...]
    loss: tuple[float, ...]
    takes_part: tuple[bool, ...] | None = None

    @classmethod
    def of(
        cls,
        holder: np.ndarray,
        names: Sequence[str],
        right: np.ndarray,
        y: np.ndarray,
        loss: np.ndarray,
        present: Sequence[bool] | None = None,
    ) -> "ClientMetrics":
        """The metrics of samples of which sample i is of the client `names[holder[i]]`.

        Args:
            holder: the client of each sample, by number.
            names: the names of all clients.
            right: whether the model gets each sample right.
            y: the true class of each sample.
            loss: the loss of each sample.
            present: by client, whether it can ever take part in training.
        """
        count = np.bincount(holder, minlength=len(names))
        known = np.flatnonzero(count).tolist()
        each = count[known]
        return cls(
            clients=tuple(names[number] for number in known),
            samples=tuple(each.tolist()),
            accuracy=tuple((np.bincount(holder, right, len(names))[known] / each).tolist()),
            balanced_accuracy=tuple(_balanced(holder, right, y, len(names))[known].tolist()),
            loss=tuple((np.bincount(holder, loss, len(names))[known] / each).tolist()),
            takes_part=None if present is None else tuple(bool(present[number]) for number in known),
        )

    @property
    def worst_client(self) -> str:
        """The name of the client with the lowest accuracy; of several the first."""
        return self.clients[self.accuracy.index(min(self.accuracy))]

    def spread(self) -> dict[str, float]:
        """Accuracy of the worst client, the quartiles, and the best; each client counts once."""
        found = np.quantile(self.accuracy, list(QUANTILES.values()))
        return dict(zip(SPREAD, found.tolist(), strict=True))

    def table(self) -> pl.DataFrame:
        """A row a client: its samples, accuracy, balanced accuracy, loss, and whether it takes part."""
        columns: dict[str, Any] = {"client": self.clients, **self._by_client()}
        return pl.DataFrame(columns, strict=False)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; above 1000 clients, `clients` is None."""
        listed = None
        if len(self.clients) <= MOST_LISTED:
            columns = self._by_client()
            listed = {
                client: {name: values[place] for name, values in columns.items()}
                for place, client in enumerate(self.clients)
            }
        return {"worst_client": self.worst_client, **self.spread(), "clients": listed}

    def _by_client(self) -> dict[str, Sequence[Any]]:
        columns: dict[str, Sequence[Any]] = {
            "samples": self.samples,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "loss": self.loss,
        }
        return columns if self.takes_part is None else columns | {"takes_part": self.takes_part}

    def __repr__(self) -> str:
        worst, low, middle, high, best = self.spread().values()
        return (
            f"ClientMetrics({len(self.clients)} clients, accuracy: worst {worst:.4f} ({self.worst_client}), "
            f"quartiles {low:.4f} to {high:.4f}, median {middle:.4f}, best {best:.4f})"
        )


def _balanced(holder: np.ndarray, right: np.ndarray, y: np.ndarray, clients: int) -> np.ndarray:
    """By client, the mean recall over the classes that it has; 0 for one without samples."""
    pairs, place = np.unique(np.stack([holder, y]), axis=1, return_inverse=True)
    place = place.ravel()
    recall = np.bincount(place, right) / np.bincount(place)
    classes = np.bincount(pairs[0], minlength=clients)
    return np.bincount(pairs[0], recall, clients) / np.maximum(classes, 1)
