"""`Training`: one run in progress, or several of one shape that advance together."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from safari.devices import everywhere, host
from safari.engine.diagnostics import DIAGNOSTICS_SCHEMA, Observer
from safari.engine.evaluation import metrics_on_test
from safari.engine.placement import devices_for, on_host, place, put
from safari.engine.privacy import guarantee_of, with_epsilon
from safari.engine.program import MOST_ROUNDS, program_for, stack, start_stacked
from safari.engine.result import Result, empty_history, history_of
from safari.engine.run import Carry, Record, Run, start
from safari.engine.trained_model import TrainedModel
from safari.errors import check

STRETCH_SECONDS = 0.5
DIVERGED_LOSS = 1000.0
"""In units of the loss of guessing, log(classes): beyond it a run counts as diverged."""


class Diverged(RuntimeError):
    """Training left the finite numbers; `result` holds the history up to that round."""

    def __init__(self, result: Result):
        self.result = result
        loss = result.history["loss_round"][-1]
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


class Training:
    """Runs, their carries and their histories so far. Where they are cut does not change a number.

    A run draws the same random numbers whether it trains alone or beside others; results differ by
    rounding at most.

    Args:
        runs: one run, or several of one shape, which are stacked and go through one compiled program.
        width: a stack of several is padded to so many runs, and to a multiple of the number of
            devices, by repeating the last.
        diagnostics: let an `Observer` look at every round of a single run; it changes no number.
        devices: for a single run, those that divide the clients of a round among them (default: those
            that make it faster). Several runs are spread over all devices.
    """

    def __init__(
        self,
        runs: Run | Sequence[Run],
        *,
        width: int = 1,
        diagnostics: bool = False,
        devices: Sequence[jax.Device] | None = None,
    ):
        self.runs = (runs,) if isinstance(runs, Run) else tuple(runs)
        self.stacked = max(len(self.runs), width) > 1
        check(not (diagnostics and self.stacked), "train.diagnostics", True, "is for single runs")
        if self.stacked:
            self._stack(width)
        else:
            self._place(devices)
        self.observer = Observer(self.run, self.carry.state.params) if diagnostics else None
        self.diagnostics = pl.DataFrame(schema=DIAGNOSTICS_SCHEMA) if diagnostics else None
        self.done = 0
        self.diverged: list[int | None] = [None] * len(self.runs)
        self.stopped: list[int | None] = [None] * len(self.runs)
        self.compile_seconds = self.train_seconds = 0.0
        self.pace = Pace()
        self._past = [empty_history(run) for run in self.runs]
        self._fresh: list[Record] = []
        self._fresh_from = 0

    def _place(self, devices: Sequence[jax.Device] | None) -> None:
        run = self.runs[0]
        with jax.default_device(next(iter(run.roster.per_round.devices()))):
            self.run, self.carry = run, start(run)
        devices = devices_for(run, self.carry.state.params) if devices is None else list(devices)
        self.devices = len(devices)
        self._where: jax.sharding.Sharding | None = None
        if len(devices) > 1 or devices[0] != jax.devices()[0] or _elsewhere(self.carry, devices[0]):
            self._where = everywhere(devices)
            self.run, self.carry = place(run, self._where), put(self.carry, self._where)

    def _stack(self, width: int) -> None:
        devices = jax.devices()
        self.devices = len(devices)
        wide = -(-max(width, len(self.runs)) // len(devices)) * len(devices)
        with jax.default_device(host()):
            run = stack([*self.runs, *[self.runs[-1]] * (wide - len(self.runs))])
            carry = start_stacked(run)
        mesh = jax.sharding.Mesh(np.array(devices), ("runs",))
        self._where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("runs"))
        self.run, self.carry = place(run, self._where), put(carry, self._where)

    @property
    def rounds(self) -> int:
        """How many rounds the runs have."""
        return self.runs[0].rounds

    @property
    def finished(self) -> bool:
        return self.done >= self.rounds or all(at is not None for at in self._ends())

    def _ends(self) -> list[int | None]:
        """The round in which each run diverged, or after which it stopped early, if it did."""
        return [one if one is not None else two for one, two in zip(self.diverged, self.stopped, strict=True)]

    def advance(self, most: int = MOST_ROUNDS) -> None:
        """Train for about half a second: one round at least, `most` at the most."""
        program, compile_seconds = program_for(self.run, self.carry, self.stacked)
        self.compile_seconds += compile_seconds
        most = most if self.observer is None else 1
        first, count = self.done, self.pace.next(min(most, self.rounds - self.done))
        before = self.carry.state.params
        began = time.perf_counter()
        self.carry, record = program(self.run, self.carry, first, count)
        took = time.perf_counter() - began
        self.train_seconds += took
        self.pace.took(took, count)
        self._keep(record, count)
        self.done += count
        if self.carry.best is not None:
            stopped = np.ravel(on_host(self.carry.best.stopped)).tolist()
            self.stopped = [round or None for round in stopped[: len(self.runs)]]
        if self.observer is not None and self.diagnostics is not None:
            seen = self.observer.row(before, self.carry.state.params, record, first)
            self.diagnostics = self.diagnostics.vstack(pl.DataFrame([seen], schema=DIAGNOSTICS_SCHEMA))

    def _keep(self, record: Record, count: int) -> None:
        """Keep the records of `count` rounds, and see which runs left the finite numbers in them."""
        record = on_host(record)
        if not self.stacked:
            record = jax.tree.map(lambda leaf: leaf[None], record)
        record = jax.tree.map(lambda leaf: leaf[: len(self.runs), :count], record)
        self._fresh.append(record)
        broken = diverged_rounds(record, self.runs[0].task.federation.dataset.classes)
        for number in np.flatnonzero(broken.any(axis=1)):
            if self.diverged[number] is None:
                self.diverged[number] = self.done + int(np.argmax(broken[number])) + 1

    @property
    def history(self) -> pl.DataFrame:
        """The history of the only run, or of the first."""
        return self.histories()[0]

    def histories(self) -> list[pl.DataFrame]:
        """The history of every run so far, up to the round in which it diverged."""
        if self._fresh:
            together = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *self._fresh)
            dataset = self.runs[0].task.federation.dataset
            counts = np.bincount(np.asarray(dataset.y_test), minlength=dataset.classes)
            first, model = self._fresh_from, self._params_bytes()
            for number, past in enumerate(self._past):
                mine = jax.tree.map(lambda leaf, number=number: leaf[number], together)
                past = pl.concat([past, history_of(mine, first, self.done - first, counts, model)])
                self._past[number] = with_epsilon(self.runs[number], past)
            self._fresh, self._fresh_from = [], self.done
        return [
            past if at is None else past.head(at) for past, at in zip(self._past, self._ends(), strict=True)
        ]

    def result(self) -> Result:
        """What the only run has come to, or the first."""
        return self.results()[0]

    def results(self) -> list[Result]:
        """What each run has come to; the seconds are its share of all."""
        share = 1 / len(self.runs)
        carries = self.carries() if self.stacked else [self.carry]
        found = []
        for number, (run, carry, history) in enumerate(
            zip(self.runs, carries, self.histories(), strict=True)
        ):
            at = self.diverged[number]
            excluded = run.roster.excluded_clients
            state: Any = carry.state
            params = carry.kept.params if bool(carry.kept.exists) else run.algorithm.deliver(state)
            federation = run.task.federation
            coverage = federation.coverage(run.roster.absent(run.streams, run.rounds))
            model = TrainedModel.of(run.task.model, params, federation.dataset, run.task.precision)
            found.append(
                Result(
                    model=model,
                    params_last=state.params,
                    history=history,
                    coverage=coverage,
                    excluded=excluded,
                    compile_seconds=self.compile_seconds * share,
                    train_seconds=self.train_seconds * share,
                    diverged_at=at,
                    stopped_at=None if at is not None else self.stopped[number],
                    diagnostics=self.diagnostics,
                    measure=partial(metrics_on_test, model, federation, run.metrics, coverage.absent),
                    privacy=guarantee_of(run),
                )
            )
        return found

    def carries(self) -> list[Carry]:
        """What changes from round to round, run by run, on the host."""
        carry = on_host(self.carry)
        if not self.stacked:
            return [carry]
        return [jax.tree.map(lambda leaf, p=place: leaf[p], carry) for place in range(len(self.runs))]

    def restore(
        self,
        carries: Sequence[Carry],
        histories: Sequence[pl.DataFrame],
        done: int,
        seconds: tuple[float, float] = (0.0, 0.0),
        diagnostics: pl.DataFrame | None = None,
    ) -> None:
        """Go on from what trainings of the same runs, alone or in other company, had reached."""
        carry = carries[0]
        if self.stacked:
            wide = jax.tree.leaves(self.carry)[0].shape[0]
            padded = [*carries, *[carries[-1]] * (wide - len(carries))]
            carry = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        self.carry = jax.tree.map(jnp.asarray, carry) if self._where is None else put(carry, self._where)
        self._past, self._fresh, self.done, self._fresh_from = list(histories), [], done, done
        self.stopped = [None if one.best is None else int(one.best.stopped) or None for one in carries]
        self.diverged = [
            len(history) if len(history) < done and len(history) != stopped else None
            for history, stopped in zip(histories, self.stopped, strict=True)
        ]
        self.compile_seconds, self.train_seconds = seconds
        if self.observer is not None:
            self.diagnostics = diagnostics

    def _params_bytes(self) -> int:
        runs = jax.tree.leaves(self.carry)[0].shape[0] if self.stacked else 1
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self.carry.state.params)) // runs


def _elsewhere(carry: Carry, device: jax.Device) -> bool:
    """Whether a run was prepared on another device than the one that is to train it."""
    return jax.tree.leaves(carry)[0].devices() != {device}
