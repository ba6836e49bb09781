"""Progress of a run: a live bar on a terminal, plain lines elsewhere, nothing if quiet."""

import math
import sys
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from safari.cli import signals
from safari.cli.session import say
from safari.engine.training import Training
from safari.experiment import Interrupted
from safari.experiment.sweep import Progress as Sweep

LINE_SECONDS = 5.0
Watcher = Callable[[Training], None]


class Shown:
    """A bar that is on the terminal for as long as a `with` block lasts, if there is one."""

    _bar: Progress | None

    def __enter__(self) -> Self:
        self._listening = signals.listening()
        self._listening.__enter__()
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
        self._listening.__exit__(None, None, None)


class Watch(Shown):
    """Shows each training it is given, and raises `Interrupted` once the user asks to stop."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._bar = _bar() if self.live else None
        self._said = -math.inf

    def follow(self, title: str) -> Watcher:
        """A watcher for one training."""
        task = self._bar.add_task(title, total=None, accuracy="", speed="compiling") if self._bar else None

        def watch(training: Training) -> None:
            if task is not None and self._bar:
                self._bar.update(
                    task, completed=training.done, total=training.rounds,
                    accuracy=_accuracy(training), speed=_speed(training),
                )  # fmt: skip
            elif not self.quiet:
                self._line(title, training)
            if signals.asked() and training.diverged[0] is None:
                raise Interrupted

        return watch

    def _line(self, title: str, training: Training) -> None:
        """Once the first round is done, then every few seconds, then in the end."""
        if time.monotonic() - self._said < LINE_SECONDS and not training.finished:
            return
        self._said = time.monotonic()
        say(f"{title}: {_round(training)}, {_speed(training)}, {_accuracy(training)}")


class SweepWatch(Shown):
    """Shows how far a sweep is, over all its runs; raises `Interrupted` once asked to stop.

    `tell` is called whenever runs have finished.
    """

    def __init__(self, quiet: bool, tell: Callable[[], None] | None = None):
        self.quiet, self._tell, self._told = quiet, tell, 0
        self._bar = _sweep_bar() if not quiet and sys.stderr.isatty() else None
        self._task = self._bar.add_task("sweep", total=None, runs="") if self._bar else None
        self._said = time.monotonic()

    def __call__(self, sweep: Sweep) -> None:
        runs = f"{sweep.runs_done}/{sweep.runs} runs"
        if sweep.diverged:
            runs += f" ({sweep.diverged} diverged)"
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=sweep.rounds_done, total=sweep.rounds, runs=runs)
        elif not self.quiet and time.monotonic() - self._said > LINE_SECONDS:
            self._said = time.monotonic()
            left = "compiling" if sweep.seconds_left is None else f"{sweep.seconds_left:,.0f} s left"
            say(f"{runs}, round {sweep.rounds_done:,}/{sweep.rounds:,}, {left}")
        if self._tell is not None and sweep.runs_done > self._told:
            self._told = sweep.runs_done
            self._tell()
        if signals.asked():
            raise Interrupted


def _sweep_bar() -> Progress:
    return Progress(
        TextColumn("{task.fields[runs]}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f} %, elapsed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        expand=True,
    )


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.completed:.0f}/{task.total}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[accuracy]}"),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        expand=True,
    )


def _accuracy(training: Training) -> str:
    """Of the model that would be delivered now."""
    known = training.history["accuracy"].drop_nulls()
    return f"accuracy {known[-1]:.1%}" if len(known) else "not evaluated yet"


def _round(training: Training) -> str:
    """How far it is. Rounds are trained some at a time; the run may have ended before the last of them."""
    stopped = training.stopped[0]
    if stopped is None:
        return f"round {training.done}/{training.rounds}"
    return f"stopped early after round {stopped}/{training.rounds}"


def _speed(training: Training) -> str:
    return f"{training.done / max(training.train_seconds, 1e-6):,.1f} rounds/s"
