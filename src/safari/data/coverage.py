"""What the clients that come hold of every class, and what follows for training on them alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_NAMED = 6
"""A sentence names no more classes or clients than this."""
SMALL = 0.5
"""Exposure below this is worth a word."""


@dataclass(frozen=True)
class Coverage:
    """What of every class is in the hands of clients that can come.

    A model that trains on clients alone has seen no sample of a class of exposure 0. It may still name
    it now and then, but nothing has taught it to: `accuracy_ceiling` is what a model can reach that
    names only what it has seen.

    Attributes:
        covered_classes: the classes of which some client that can come holds a sample.
        covered_mass: their share of the training samples.
        accuracy_ceiling: their share of the test set.
        exposure: by class name, the share of the clients' samples of this class that is held by clients
            that can come; 0 where no client holds one.
        clients: how many there are.
        absent: those that never come, by number: excluded, or not available in any round.
        absent_names: what they are called.
        nowhere: the names of the classes that no client holds.
        client_names: what all clients are called; empty where they have numbers only.

    Examples:
        >>> import safari
        >>> coverage = safari.federate("digits").coverage(excluded=[0, 1])
        >>> coverage.covered_classes, coverage.exposure["2"], coverage.exposure["3"]
        ((0, 1, 3, 4, 6, 7, 8, 9), 0.0, 1.0)
    """

    covered_classes: tuple[int, ...]
    covered_mass: float
    accuracy_ceiling: float
    exposure: dict[str, float]
    clients: int
    absent: tuple[int, ...]
    absent_names: tuple[str, ...]
    nowhere: tuple[str, ...] = ()
    client_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        nowhere = f" No client holds a sample of {_listed(self.nowhere)}." if self.nowhere else ""
        return f"{self._who()}{nowhere}{self._ceiling()}"

    def _who(self) -> str:
        if not self.absent:
            return f"All {self.clients} clients can take part."
        names = f" ({', '.join(self.absent_names)})" if 0 < len(self.absent_names) <= MOST_NAMED else ""
        never, hold = ("takes", "it holds") if len(self.absent) == 1 else ("take", "they hold")
        who = f"{len(self.absent)} of {self.clients} clients never {never} part{names}"
        return f"{who}; {hold} {self._hidden()}."

    def _ceiling(self) -> str:
        if self.accuracy_ceiling == 1:
            return ""
        others = "the other clients" if self.absent else "clients"
        return (
            f" A model of {others} alone that names only classes it has seen "
            f"gets at most {100 * self.accuracy_ceiling:.1f} % of the test set right."
        )

    def _hidden(self) -> str:
        """What those who never come hold, the most hidden class first."""
        exposed = {name: share for name, share in self.exposure.items() if name not in self.nowhere}
        unseen = [name for name, share in exposed.items() if share == 0]
        small = sorted((share, name) for name, share in exposed.items() if 0 < share < SMALL)
        words = [f"all samples of {_listed(unseen)}"] if unseen else []
        words += [f"{_percent(1 - share)} of {name}" for share, name in small[:MOST_NAMED]]
        if words:
            return ", ".join(words)
        share, name = min((share, name) for name, share in exposed.items())
        return f"{_percent(1 - share)} of {name}, and no larger share of any class"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return shown if len(names) <= MOST_NAMED else f"{shown} and {len(names) - MOST_NAMED} classes more"


def _percent(share: float) -> str:
    """Rounded, but never up to 100 or down to 0."""
    return f"{min(max(round(100 * share), 1), 99)} %" if 0 < share < 1 else f"{100 * share:.0f} %"


def measure_coverage(
    y: np.ndarray,
    y_test: np.ndarray,
    held: Sequence[np.ndarray],
    absent: Sequence[int],
    labels: Sequence[str],
    client_names: Sequence[str] | None,
) -> Coverage:
    """Coverage where client i holds the samples `held[i]` of `y` and `absent` never come."""
    counts = np.array([np.bincount(y[part], minlength=len(labels)) for part in held])
    gone = np.zeros(len(held), bool)
    gone[np.asarray(absent, int)] = True
    seen, whole = counts[~gone].sum(axis=0), counts.sum(axis=0)
    covered = np.flatnonzero(seen)
    exposure = (seen / np.maximum(whole, 1)).tolist()
    never = tuple(int(client) for client in np.flatnonzero(gone))
    return Coverage(
        tuple(int(label) for label in covered),
        float(np.isin(y, covered).mean()),
        float(np.isin(y_test, covered).mean()),
        dict(zip(labels, exposure, strict=True)),
        len(held),
        never,
        () if client_names is None else tuple(client_names[client] for client in never),
        tuple(label for label, count in zip(labels, whole, strict=True) if not count),
        tuple(client_names or ()),
    )
