"""A unit of a sweep as a task: what is trained, and the messages that come of it, wherever it is trained."""

import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax

from safari.engine import Training
from safari.experiment.run import CHECKPOINT_SECONDS
from safari.experiment.sweep.planner import Unit
from safari.experiment.sweep.store import Saved, pack_state, restore, row_of


@dataclass(frozen=True)
class Task:
    """A unit to train, and how far its runs had come; nothing saved: from the first round."""

    unit: Unit
    saved: tuple[Saved, ...] = ()


@dataclass(frozen=True)
class Advanced:
    """So many rounds of the unit are done."""

    done: int


@dataclass(frozen=True)
class Reached:
    """The same, with the state of the runs, as files."""

    done: int
    files: dict[str, bytes]


@dataclass(frozen=True)
class Finished:
    """The runs are trained: a row each."""

    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Stopped:
    """The unit was asked to stop, and has."""


@dataclass(frozen=True)
class Failed:
    """The unit cannot be trained."""

    error: Exception


@dataclass(frozen=True)
class Lost:
    """Who trained the unit is gone: a process that was killed, a machine that was taken away."""

    why: str


Message = Advanced | Reached | Finished | Stopped | Failed | Lost
ENDS = (Finished, Stopped, Failed, Lost)
"""After one of these, no more is heard of the task."""


def train(task: Task, stopping: Callable[[], bool]) -> Iterator[Message]:
    """Train a unit to its end, or to where `stopping` says so; a message about twice a second."""
    try:
        yield from _train(task, stopping)
    except Exception as error:
        yield Failed(error)


def _train(task: Task, stopping: Callable[[], bool]) -> Iterator[Message]:
    unit = task.unit
    cells = [one.cell for one in unit.cells]
    training = Training([one.run for one in unit.cells], width=unit.width, devices=jax.devices()[:1])
    if task.saved:
        restore(training, task.saved)
    saved = time.monotonic()
    while not training.finished:
        training.advance()
        if training.finished:
            break
        stop = stopping()
        if stop or time.monotonic() - saved > CHECKPOINT_SECONDS:
            yield Reached(training.done, pack_state(cells, training))
            saved = time.monotonic()
        else:
            yield Advanced(training.done)
        if stop:
            yield Stopped()
            return
    yield Finished([row_of(cell, result) for cell, result in zip(cells, training.results(), strict=True)])


def told_elsewhere(message: Message) -> Message:
    """A message that goes to another process: there, an error has no traceback of its own."""
    if isinstance(message, Failed):
        message.error.add_note("".join(traceback.format_exception(message.error)))
    return message
