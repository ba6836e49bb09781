"""`Bundle`: runs of one shape that advance together, on all devices there are."""

import time
from collections.abc import Sequence

import jax
import numpy as np
import polars as pl

from safari.engine import (
    MOST_ROUNDS,
    Carry,
    Record,
    Run,
    program_for,
    stack,
    start,
    start_stacked,
)
from safari.placement import on_host, place, put
from safari.result import HISTORY_SCHEMA, Log, history_of
from safari.training import Pace, diverged_rounds, traffic_of


class Bundle:
    """One run or several; several are stacked and go through one compiled program.

    A bundle of several is padded to `width` runs, and to a multiple of the number of
    devices, by repeating the last; its runs are spread over the devices. What a run draws
    does not depend on its company, and its numbers do so by rounding only.
    """

    def __init__(self, runs: Sequence[Run], width: int | None = None):
        self.runs = tuple(runs)
        self.stacked = len(runs) > 1 or (width or 1) > 1
        self.rounds = runs[0].rounds
        self.done = 0
        self.diverged_at: list[int | None] = [None] * len(runs)
        self.compile_seconds = self.train_seconds = 0.0
        self._past = [pl.DataFrame(schema=HISTORY_SCHEMA) for _ in runs]
        self._fresh: list[Record] = []
        self._fresh_from = 0
        self._pace = Pace()
        devices = jax.devices() if self.stacked else jax.devices()[:1]
        wide = -(-max(width or 1, len(runs)) // len(devices)) * len(devices)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            run = stack([*runs, *[runs[-1]] * (wide - len(runs))]) if self.stacked else runs[0]
            carry = start_stacked(run) if self.stacked else start(run)
        self._across = jax.sharding.NamedSharding(
            jax.sharding.Mesh(np.array(devices), ("runs",)),
            jax.sharding.PartitionSpec(*(("runs",) if self.stacked else ())),
        )
        self.run = place(run, self._across)
        self.carry = put(carry, self._across)

    @property
    def finished(self) -> bool:
        return self.done >= self.rounds or all(at is not None for at in self.diverged_at)

    def advance(self, most: int = MOST_ROUNDS) -> None:
        """Train for about half a second: one round at least, `most` at the most."""
        program, compile_seconds = program_for(self.run, self.carry, self.stacked)
        self.compile_seconds += compile_seconds
        count = self._pace.next(min(most, self.rounds - self.done))
        began = time.perf_counter()
        self.carry, record = program(self.run, self.carry, self.done, count)
        took = time.perf_counter() - began
        self.train_seconds += took
        self._pace.took(took, count)
        self._keep(record, count)
        self.done += count

    def _keep(self, record: Record, count: int) -> None:
        """Note the records of `count` rounds, and which runs left the finite numbers in them."""
        record = on_host(record)
        if not self.stacked:
            record = jax.tree.map(lambda leaf: leaf[None], record)
        record = jax.tree.map(lambda leaf: leaf[: len(self.runs), :count], record)
        self._fresh.append(record)
        classes = self.runs[0].task.federation.dataset.classes
        broken = diverged_rounds(record, classes)
        for number in np.flatnonzero(broken.any(axis=1)):
            if self.diverged_at[number] is None:
                self.diverged_at[number] = self.done + int(np.argmax(broken[number])) + 1

    def histories(self) -> list[pl.DataFrame]:
        """The history of every run so far, up to the round in which it diverged."""
        if self._fresh:
            together = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self._fresh)
            dataset = self.runs[0].task.federation.dataset
            counts = np.bincount(np.asarray(dataset.y_test), minlength=dataset.classes)
            traffic = traffic_of(self.runs[0], self._params_bytes())
            first = self._fresh_from
            for number, past in enumerate(self._past):
                mine = jax.tree.map(lambda leaf, number=number: leaf[number], together)
                fresh = history_of(mine, first, self.done - first, counts, traffic)
                self._past[number] = pl.concat([past, fresh])
            self._fresh, self._fresh_from = [], self.done
        return [
            past if at is None else past.head(at)
            for past, at in zip(self._past, self.diverged_at, strict=True)
        ]

    def logs(self) -> list[Log]:
        """What each run showed; the seconds are its share of the bundle's."""
        share = 1 / len(self.runs)
        logs = []
        for run, history, at in zip(self.runs, self.histories(), self.diverged_at, strict=True):
            excluded = run.roster.excluded_clients
            logs.append(
                Log(
                    history=history,
                    coverage=run.task.federation.coverage(excluded),
                    excluded=excluded,
                    compile_seconds=self.compile_seconds * share,
                    train_seconds=self.train_seconds * share,
                    diverged_at=at,
                )
            )
        return logs

    def carries(self) -> list[Carry]:
        """What changes from round to round, run by run, on the host."""
        carry = on_host(self.carry)
        if not self.stacked:
            return [carry]
        return [jax.tree.map(lambda leaf, p=place: leaf[p], carry) for place in range(len(self.runs))]

    def restore(self, carries: Sequence[Carry], histories: Sequence[pl.DataFrame], done: int) -> None:
        """Go on from what bundles of the same runs, this one or others, had reached."""
        if self.stacked:
            wide = jax.tree.leaves(self.carry)[0].shape[0]
            padded = [*carries, *[carries[-1]] * (wide - len(carries))]
            carry = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        else:
            carry = carries[0]
        self.carry = put(carry, self._across)
        self._past, self.done, self._fresh_from = list(histories), done, done
        self.diverged_at = [
            len(history) if len(history) < done else None for history in histories
        ]  # fmt: skip

    def _params_bytes(self) -> int:
        runs = jax.tree.leaves(self.carry)[0].shape[0] if self.stacked else 1
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self.carry.state.params)) // runs
