"""A round of a fleet in the making, and what a client strategy may tell about it."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from flwr.app import ArrayRecord, Message

from safari.flower.arrays import Arrays


@runtime_checkable
class TellsGradient(Protocol):
    """A client strategy that knows how many steps each client takes."""

    def mean_gradient(self, replies: list[Message]) -> Arrays:
        """The clients' mean gradient in the round that was sent last."""
        ...


@dataclass
class Round:
    """A round in the making.

    `off` says why a client round cannot be one, where it cannot. `seconds` says after how long each node
    answered. `gradient` is the clients' mean gradient, where an adaptive q wants it. `own` is what the
    server's step would change, where replies are judged by it.
    """

    round: int
    kind: str
    arrays: ArrayRecord
    q: float
    available: int = 0
    cohort: tuple[int, ...] = ()
    off: str = ""
    down: int = 0
    up: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    gradient: Arrays | None = None
    own: Arrays | None = None
