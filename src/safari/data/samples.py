"""`Samples`: labelled samples as they were read, before anybody holds them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from safari.errors import InputError, check, unknown_name

if TYPE_CHECKING:
    from safari.data.reading.options import Options

Missing = Literal["mean"]
Scale = Literal["standard", "none"]
MOST_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Labelled samples: what `safari.read` finds, and what `safari.federate` takes.

    Attributes:
        x: the samples, one in a row; float32, NaN where a value is missing, or uint8 pixels.
        y: the class of each, a number that `labels` gives a name to.
        labels: the names of the classes.
        client: who holds each sample, a number that `clients` gives a name to; or None.
        clients: the names of the clients; or None.
        features: the names of the columns of `x`; None for arrays and images.
        name: what the samples are called: a file by its name without the ending.
        origin: where they come from, in messages.
        missing: `mean` lets the server's means stand for missing values; None refuses them.
        scale: `standard` or `none`.
        test: the test set that came along; or None.
        options: how they were read; a file that goes with them is read alike.

    Examples:
        >>> import numpy as np, safari
        >>> safari.read(np.ones((3, 2)), np.array(["n", "y", "n"])).labels
        ('n', 'y')
    """

    x: np.ndarray
    y: np.ndarray
    labels: tuple[str, ...]
    client: np.ndarray | None = None
    clients: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    name: str = "own"
    origin: str = "the samples"
    missing: Missing | None = None
    scale: Scale = "standard"
    test: "Samples | None" = None
    options: "Options | None" = None

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Samples({self.describe()})"

    @property
    def label_column(self) -> str | None:
        """The column that the labels were in; None for arrays and images."""
        named = None if self.options is None else self.options.label
        return None if self.features is None else named or "label"

    def describe(self) -> str:
        """What was read, in one line."""
        shape = "x".join(map(str, self.x.shape[1:]))
        found = [f"{self.origin}: {len(self)} samples", _counted(self.x.shape[1], "feature")]
        if self.x.ndim > 2:
            found[1] = f"of shape {shape}"
        counts = np.bincount(self.y, minlength=len(self.labels)).tolist()
        found.append(f"{_counted(len(self.labels), 'class', 'es')} ({_listed(self.labels, counts)})")
        if self.client is not None and self.clients is not None:
            sizes = np.bincount(self.client, minlength=len(self.clients)).tolist()
            found.append(f"{_counted(len(self.clients), 'client')} ({_listed(self.clients, sizes)})")
        absent = int(np.isnan(self.x).sum()) if self.x.dtype != np.uint8 else 0
        return ", ".join([*found, *([f"{absent} values missing"] if absent else [])])

    def like(self, other: "Samples", key: str) -> "Samples":
        """The same samples with the features of `other`, in its order, and its classes.

        Raises:
            InputError: if a feature is missing or one too many, or a label is none of `other`; `key` says
                which samples these are.
        """
        x, y = self._features_of(other, key), self._labels_of(other, key)
        named = self.features is not None and other.features is not None
        return replace(
            self, x=x, y=y, labels=other.labels, features=other.features if named else self.features
        )

    def _features_of(self, other: "Samples", key: str) -> np.ndarray:
        if self.features is None or other.features is None:
            wanted = (
                f"holds samples of shape {self.x.shape[1:]}; those of {other.origin} are {other.x.shape[1:]}"
            )
            check(self.x.shape[1:] == other.x.shape[1:], key, self.origin, wanted)
            same = (self.x.dtype == np.uint8) == (other.x.dtype == np.uint8)
            check(same, key, self.origin, f"holds {self.x.dtype}; {other.origin} holds {other.x.dtype}")
            return self.x
        for name in other.features:
            hint = f"lacks column {name}, which {other.origin} has"
            check(name in self.features, key, self.origin, hint)
        for name in self.features:
            hint = f'has column {name}, which {other.origin} lacks; leave it out with drop = ["{name}"]'
            check(name in other.features, key, self.origin, hint)
        if self.features == other.features:
            return self.x
        place = {name: number for number, name in enumerate(self.features)}
        return self.x[:, [place[name] for name in other.features]]

    def _labels_of(self, other: "Samples", key: str) -> np.ndarray:
        place = {name: number for number, name in enumerate(other.labels)}
        for number, name in enumerate(self.labels):
            rows = np.flatnonzero(self.y == number)
            if name not in place and len(rows):
                named = self.options.label if self.options and self.options.label else "label"
                column = f"column {named}, " if self.features else ""
                said = (
                    f'{column}row {rows[0] + 1} has the label "{name}", which no sample of {other.origin} has'
                )
                mend = f"mend the row, or name all classes with labels = {texts((*other.labels, name))}"
                raise InputError(key, self.origin, f"{said}; {mend}")
        number_there = np.array([place.get(name, -1) for name in self.labels], np.int32)
        return number_there[self.y]


def numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of their numbers: numbers by size, texts by the alphabet."""
    try:
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))


def check_known(key: str, name: str, known: Sequence[str], what: str) -> None:
    """Refuse a name that is none of `known`."""
    check(name in known, key, name, unknown_name(name, known, what))


def _counted(count: int, what: str, plural: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else plural}"


def _listed(names: Sequence[str], counts: Sequence[int]) -> str:
    shown = [f"{name} {count}" for name, count in zip(names, counts, strict=True)][:MOST_SHOWN]
    return ", ".join([*shown, *(["..."] if len(names) > MOST_SHOWN else [])])


def texts(names: Sequence[str]) -> str:
    """Names as a list that a spec can hold."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
