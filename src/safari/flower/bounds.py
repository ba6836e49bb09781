"""How long a client's update may be and how much a client may count, measured by what others sent.

Both bounds are multiples of a running median over replies that were accepted. A median does not move
for a minority, whatever it sends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from logging import WARNING

from flwr.common import log

WINDOW = 30
"""So many accepted replies are remembered."""
ENOUGH = 10
"""With fewer, the replies of the round itself are looked at too."""
STALE_AFTER = 3
"""After so many rounds in a row in which every reply was too long, what is remembered is out of date."""


@dataclass
class Bounds:
    """The longest update and the largest weight, as multiples of the running medians; None: no bound."""

    norm: float | None = 5.0
    weight: float | None = 3.0
    norms: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    refused: int = 0

    def longest(self, norms: Sequence[float]) -> tuple[float, float] | None:
        """The longest update that counts in a round of such updates, and the median behind it."""
        return _bound(self.norm, self.norms, norms)

    def heaviest(self, weights: Sequence[float]) -> float | None:
        """The largest weight that counts in a round of such weights."""
        found = _bound(self.weight, self.weights, weights)
        return None if found is None else found[0]

    def accept(self, norms: Sequence[float], weights: Sequence[float], too_long: int) -> None:
        """Remember the replies of a round that count; so many more were too long."""
        self.norms = [*self.norms, *norms][-WINDOW:]
        self.weights = [*self.weights, *weights][-WINDOW:]
        if norms or too_long:
            self.refused = 0 if norms else self.refused + 1
        if self.refused >= STALE_AFTER:
            log(
                WARNING, "safari: every update of %d rounds was too long: the bound begins anew", self.refused
            )
            self.norms, self.refused = [], 0

    def save(self) -> dict[str, list[float] | int]:
        """What is remembered, not what is set."""
        return {"norms": self.norms, "weights": self.weights, "refused": self.refused}

    def restore(self, norms: list[float], weights: list[float], refused: int) -> None:
        """Go on from what was remembered."""
        self.norms, self.weights, self.refused = norms, weights, refused


def lower_median(values: Sequence[float]) -> float:
    """The median; of an even number of values the smaller of the two in the middle."""
    return sorted(values)[(len(values) - 1) // 2]


def _bound(
    multiple: float | None, before: Sequence[float], now: Sequence[float]
) -> tuple[float, float] | None:
    known = before if len(before) >= ENOUGH else [*before, *now]
    if multiple is None or not known or (middle := lower_median(known)) <= 0:
        return None
    return multiple * middle, middle
