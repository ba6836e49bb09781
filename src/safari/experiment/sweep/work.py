"""Carrying a plan out: units begin where there is room; what they tell is written, what is lost redone."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from safari.experiment.run import Interrupted
from safari.experiment.sweep.cells import Cell
from safari.experiment.sweep.places.place import Place
from safari.experiment.sweep.planner import Plan, Unit
from safari.experiment.sweep.store import Saved, Store, unpack_state
from safari.experiment.sweep.task import (
    ENDS,
    Advanced,
    Failed,
    Finished,
    Lost,
    Message,
    Reached,
    Task,
)

LOOK_SECONDS = 0.5
MOST_TRIES = 3
"""How often a unit is begun whose process or machine is lost each time."""
Watcher = Callable[["Progress"], None]
"""Called about twice a second; raises `Interrupted` to stop."""


@dataclass
class Progress:
    """How far a sweep is. Rounds are counted over all its runs."""

    runs: int
    rounds: int
    runs_done: int = 0
    rounds_done: int = 0
    began_with: int = 0
    diverged: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float | None:
        """By the speed so far; None before anything has been done."""
        made = self.rounds_done - self.began_with
        spent = time.monotonic() - self.began
        return None if made <= 0 else spent / made * (self.rounds - self.rounds_done)


class Work:
    """The units of a plan: which wait, which are in flight, and what is known of them."""

    def __init__(self, store: Store, plan: Plan, saved: dict[str, Saved], progress: Progress, place: Place):
        self.store, self.plan, self.saved, self.progress, self.place = store, plan, saved, progress, place
        self._waiting = list(plan.units)
        self._flying: dict[int, Unit] = {}
        self._done: dict[int, int] = {}
        self._lost: dict[str, int] = {}
        self._begun = 0

    def work(self, watch: Watcher) -> None:
        """Work everything off; `watch` may raise `Interrupted`, then states are saved first."""
        try:
            while self._waiting or self._flying:
                self._begin()
                self._look()
                watch(self.progress)
        except KeyboardInterrupt:
            raise Interrupted from None
        finally:
            self._waiting.clear()
            if self._flying:
                self.place.stop()
            while self._flying:
                self._look(ending=True)

    def _begin(self) -> None:
        """Begin the next units, longest first, that find room; one always does."""
        for unit in list(self._waiting):
            flying = list(self._flying.values())
            if flying and not self.place.has_room(unit, flying, self.plan):
                continue
            self._waiting.remove(unit)
            self._begun += 1
            self._flying[self._begun], self._done[self._begun] = unit, unit.done
            saved = [self.saved[one.cell.key] for one in unit.cells] if unit.done else []
            self.place.begin(self._begun, Task(unit, tuple(saved)))

    def _look(self, ending: bool = False) -> None:
        """Write down what the units in flight tell. Who is `ending` lets go of what is lost or fails."""
        units = dict(self._flying)
        # Of a machine that was given up, something may still come.
        told = [(number, message) for number, message in self.place.look(LOOK_SECONDS) if number in units]
        for number, message in told:
            if isinstance(message, ENDS):
                self._flying.pop(number, None)
        failed = [self._take(number, units[number], message, ending) for number, message in told]
        for error in failed:
            if error is not None and not ending:
                raise error

    def _take(self, number: int, unit: Unit, message: Message, ending: bool) -> Exception | None:
        """Write down one message; the error, if the sweep cannot go on."""
        keys = [one.cell.key for one in unit.cells]
        if isinstance(message, Advanced | Reached):
            self._count(number, unit, message.done)
        if isinstance(message, Reached):
            self.store.save(name_of(keys), keys, message.done, message.files)
            self.saved.update(unpack_state(message.files))
        elif isinstance(message, Finished):
            self._count(number, unit, unit.rounds)
            self.store.finish(name_of(keys), message.rows)
            self.progress.runs_done += len(keys)
            self.progress.diverged += sum(row["diverged_at"] is not None for row in message.rows)
            for key in keys:
                self.saved.pop(key, None)
        elif isinstance(message, Lost) and not ending:
            return self._again(number, unit, keys, message.why)
        return message.error if isinstance(message, Failed) else None

    def _count(self, number: int, unit: Unit, done: int) -> None:
        self.progress.rounds_done += (done - self._done[number]) * len(unit.cells)
        self._done[number] = done

    def _again(self, number: int, unit: Unit, keys: list[str], why: str) -> Exception | None:
        """Put a lost unit back in front, from the last state that is known of it."""
        name = name_of(keys)
        self._lost[name] = self._lost.get(name, 0) + 1
        if self._lost[name] >= MOST_TRIES:
            return ChildProcessError(f"a run was begun {MOST_TRIES} times and lost each time; {why}")
        done = self.saved[keys[0]].done if keys[0] in self.saved else 0
        self._count(number, unit, done)
        cells = tuple(replace(one, done=done) for one in unit.cells)
        self._waiting.insert(0, replace(unit, cells=cells))
        return None


def progress_of(cells: Sequence[Cell], plan: Plan) -> Progress:
    """Where a sweep begins."""
    todo = [one for unit in plan.units for one in unit.cells]
    rounds = sum(cell.spec.tables["train"]["rounds"] for cell in cells)
    left = sum(one.run.rounds - one.done for one in todo)
    behind = rounds - left
    return Progress(len(cells), rounds, len(cells) - len(todo), behind, behind)


def name_of(keys: Sequence[str]) -> str:
    """What the files of cells are called that are trained together."""
    return hashlib.sha256("".join(keys).encode()).hexdigest()[:12]
