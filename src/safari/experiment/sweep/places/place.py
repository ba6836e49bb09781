"""Where the units of a sweep are trained: what the sweep asks of any such place."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from safari.experiment.sweep.planner import Plan, Unit
from safari.experiment.sweep.task import Message, Task


class Place(ABC):
    """Trains tasks side by side, and tells how they get on. Whoever uses it writes the results.

    One place can serve several sweeps, one after another. Use it in a `with` block, or `close` it.
    """

    parts = 1
    """How many units share the memory of one device, each with its own part of it."""

    def open(self) -> None:
        """See to it that tasks can begin: called where there are some, before a file is written."""
        return

    @abstractmethod
    def has_room(self, unit: Unit, flying: Sequence[Unit], plan: Plan) -> bool:
        """Whether `unit` can begin beside those in flight, which are one at least."""

    @abstractmethod
    def begin(self, number: int, task: Task) -> None:
        """Begin to train a task; messages about it bear its number."""

    @abstractmethod
    def look(self, seconds: float) -> list[tuple[int, Message]]:
        """The messages that have come, waiting up to so long for the first."""

    @abstractmethod
    def stop(self) -> None:
        """Ask every task in flight to stop where it is; each still says how it ended."""

    def close(self) -> None:
        """Let go of all that the place holds."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
