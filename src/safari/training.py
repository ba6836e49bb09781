"""`Training`: a run in progress, advanced a stretch of rounds at a time."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import polars as pl

from safari.devices import everywhere
from safari.diagnostics import DIAGNOSTICS_SCHEMA, Observer
from safari.engine import MOST_ROUNDS, Carry, Record, Run, program_for, start
from safari.placement import devices_for, place, put
from safari.result import HISTORY_SCHEMA, Result, Traffic, history_of

STRETCH_SECONDS = 0.5
DIVERGED_LOSS = 1000.0
"""In units of the loss of guessing, log(classes): beyond it a run counts as diverged."""


class Diverged(RuntimeError):
    """Training left the finite numbers; `result` holds the history up to that round."""

    def __init__(self, result: Result):
        self.result = result
        loss = result.history["loss"][-1]
        found = "parameters that are not finite" if loss is None else f"a test loss of {loss:.3g}"
        super().__init__(
            f"training diverged in round {result.diverged_at} with {found}; "
            "lower the rates (local_rate, global_rate, server rate)"
        )


class Pace:
    """How many rounds make about half a second, from how long the last ones took."""

    def __init__(self) -> None:
        self._round_seconds: float | None = None

    def next(self, most: int) -> int:
        """The next stretch: one round at least and at first, `most` at the most.

        Several processes go in step, whatever their clocks say.
        """
        if jax.process_count() > 1:
            return min(most, MOST_ROUNDS)
        wanted = 1 if self._round_seconds is None else int(STRETCH_SECONDS / max(self._round_seconds, 1e-6))
        return max(1, min(wanted, most, MOST_ROUNDS))

    def took(self, seconds: float, rounds: int) -> None:
        self._round_seconds = seconds / rounds


def diverged_rounds(record: Record, classes: int) -> np.ndarray:
    """Which of the recorded rounds left the finite numbers, or all bounds; any leading axes."""
    limit = DIVERGED_LOSS * np.log(max(classes, 2))
    loss = np.where(record.evaluated, record.score.loss, 0.0)
    return ~np.asarray(record.finite) | ~(loss <= limit)


def traffic_of(run: Run, params_bytes: int) -> Traffic:
    algorithm = run.algorithm
    return Traffic(down=params_bytes * algorithm.models_down, up=params_bytes * algorithm.models_up)


class Training:
    """A run, its carry and its history so far. Where it is cut does not change its numbers.

    With `diagnostics` every round is looked at by an `Observer`, which changes no number either.
    `devices` share the clients of a round out; by default those that make it faster.
    """

    def __init__(self, run: Run, diagnostics: bool = False, devices: Sequence[jax.Device] | None = None):
        self.run, self.carry = run, start(run)
        self.devices = devices_for(run, self.carry.state.params) if devices is None else devices
        self._where = everywhere(self.devices) if len(self.devices) > 1 else None
        if self._where is not None:
            self.run, self.carry = place(run, self._where), put(self.carry, self._where)
        self.history = pl.DataFrame(schema=HISTORY_SCHEMA)
        self.observer = Observer(run, self.carry.state.params) if diagnostics else None
        self.diagnostics = pl.DataFrame(schema=DIAGNOSTICS_SCHEMA) if diagnostics else None
        self.diverged_at: int | None = None
        self.compile_seconds = self.train_seconds = 0.0
        dataset = run.task.federation.dataset
        self._test_counts = np.bincount(np.asarray(dataset.y_test), minlength=dataset.classes)
        self.pace = Pace()

    @property
    def done(self) -> int:
        """How many rounds are behind."""
        return len(self.history)

    @property
    def finished(self) -> bool:
        return self.done >= self.run.rounds or self.diverged_at is not None

    def restore(
        self,
        carry: Carry,
        history: pl.DataFrame,
        seconds: tuple[float, float],
        diagnostics: pl.DataFrame | None,
    ) -> None:
        """Go on from what an earlier `Training` of the same run had reached."""
        self.carry = carry if self._where is None else put(carry, self._where)
        self.history = history
        self.compile_seconds, self.train_seconds = seconds
        if self.observer is not None:
            self.diagnostics = diagnostics

    def advance(self, most: int = MOST_ROUNDS) -> None:
        """Train for about half a second: one round at least, `most` at the most."""
        program, compile_seconds = program_for(self.run, self.carry)
        self.compile_seconds += compile_seconds
        most = most if self.observer is None else 1
        first, count = self.done, self.pace.next(min(most, self.run.rounds - self.done))
        before = self.carry.state.params
        began = time.perf_counter()
        self.carry, record = program(self.run, self.carry, first, count)
        took = time.perf_counter() - began
        self.train_seconds += took
        self.pace.took(took, count)
        rows = history_of(record, first, count, self._test_counts, self.traffic)
        broken = diverged_rounds(record, self.run.task.federation.dataset.classes)[:count]
        if broken.any():
            rows = rows.head(int(np.argmax(broken)) + 1)
            self.diverged_at = first + len(rows)
        self.history = pl.concat([self.history, rows])
        if self.observer is not None and self.diagnostics is not None:
            seen = self.observer.row(before, self.carry.state.params, record, first)
            self.diagnostics = self.diagnostics.vstack(pl.DataFrame([seen], schema=DIAGNOSTICS_SCHEMA))

    @property
    def traffic(self) -> Traffic:
        return traffic_of(self.run, sum(leaf.nbytes for leaf in jax.tree.leaves(self.carry.state.params)))

    def result(self) -> Result:
        excluded = self.run.roster.excluded_clients
        state: Any = self.carry.state
        return Result(
            params=self.run.algorithm.deliver(state),
            params_last=state.params,
            history=self.history,
            coverage=self.run.task.federation.coverage(excluded),
            excluded=excluded,
            compile_seconds=self.compile_seconds,
            train_seconds=self.train_seconds,
            diverged_at=self.diverged_at,
            diagnostics=self.diagnostics,
        )
