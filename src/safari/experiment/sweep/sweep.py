"""Carrying a sweep out: units side by side, states saved, finished cells never redone."""

import hashlib
import json
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import polars as pl
import tomli_w

from safari.data import Federation
from safari.devices import host
from safari.engine import Training
from safari.experiment.directory import Directory, refuse_existing
from safari.experiment.run import CHECKPOINT_SECONDS, Interrupted
from safari.experiment.sweep.cells import Cell, SweepSpec, in_cell
from safari.experiment.sweep.planner import Plan, Prepared, Unit, make_plan
from safari.experiment.sweep.store import (
    CELLS,
    Saved,
    Store,
    in_order,
    plan_bytes,
    read_finished,
    read_plan,
    restore,
)
from safari.experiment.versions import provenance, versions

LOOK_SECONDS = 0.5
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


def new_sweep(spec: SweepSpec, out: Path, watch: Watcher, about: dict[str, Any]) -> pl.DataFrame:
    """Carry `spec` out in the new directory `out`; `about` goes into its spec.toml.

    Nothing is written unless every cell is sound.
    """
    refuse_existing(out)
    cells = spec.cells()
    prepared = prepare_cells(cells, {})
    plan = make_plan(prepared)
    about = {**about, "made": provenance(), "versions": versions()}
    with Directory.create(out, tomli_w.dumps(about), {CELLS: plan_bytes(spec)}) as directory:
        return _carry_out(Store(directory), cells, plan, {}, watch)


def resume_sweep(path: Path, watch: Watcher, warn: Callable[[str], None] = warnings.warn) -> pl.DataFrame:
    """Go on with the sweep in `path`; finished cells are left as they are.

    `warn` is told of states that are damaged, where those before them are taken.
    """
    with Directory.open(path, warn) as directory:
        directory.sweep()
        directory.read_spec()
        store = Store(directory)
        cells = read_plan(path).cells()
        finished = set(read_finished(path)["cell"])
        saved = store.load_saved(finished)
        prepared = prepare_cells([cell for cell in cells if cell.key not in finished], saved)
        return _carry_out(store, cells, make_plan(prepared), saved, watch)


def plan_sweep(spec: SweepSpec) -> Plan:
    """What a sweep would do."""
    return make_plan(prepare_cells(spec.cells(), {}))


def read_sweep(path: Path) -> tuple[list[Cell], pl.DataFrame]:
    """The cells of a sweep, and the rows of those that are finished."""
    cells = read_plan(path).cells()
    return cells, in_order(read_finished(path), cells)


def prepare_cells(cells: Sequence[Cell], saved: dict[str, Saved]) -> list[Prepared]:
    """Build the runs of all cells, on the host; federations that cells share are built once."""
    federations: dict[str, Federation] = {}
    prepared = []
    with jax.default_device(host()):
        for cell in cells:
            data = json.dumps(cell.spec.tables["data"], sort_keys=True)
            done = saved[cell.key].done if cell.key in saved else 0
            with in_cell(cell.settings):
                if data not in federations:
                    federations[data] = cell.spec.federation()
                prepared.append(Prepared(cell, cell.spec.prepare(federations[data]), done))
    return prepared


def _carry_out(
    store: Store, cells: list[Cell], plan: Plan, saved: dict[str, Saved], watch: Watcher
) -> pl.DataFrame:
    workers = Workers(store, plan, saved, _progress_of(cells, plan))
    try:
        workers.work(watch)
    finally:
        results = store.write_results(cells)
    return results


def _progress_of(cells: list[Cell], plan: Plan) -> Progress:
    todo = [one for unit in plan.units for one in unit.cells]
    rounds = sum(cell.spec.tables["train"]["rounds"] for cell in cells)
    left = sum(one.run.rounds - one.done for one in todo)
    behind = rounds - left
    return Progress(len(cells), rounds, len(cells) - len(todo), behind, behind)


class Workers:
    """Threads that work the units of a plan off, as many at once as lanes and memory allow."""

    def __init__(self, store: Store, plan: Plan, saved: dict[str, Saved], progress: Progress):
        self.store, self.plan, self.saved, self.progress = store, plan, saved, progress
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def work(self, watch: Watcher) -> None:
        """Work everything off; `watch` may raise `Interrupted`, then states are saved first."""
        waiting = list(self.plan.units)
        flying: dict[Future, Unit] = {}
        with ThreadPoolExecutor(self.plan.lanes) as pool:
            try:
                while waiting or flying:
                    for unit in self._admissible(waiting, list(flying.values())):
                        waiting.remove(unit)
                        flying[pool.submit(self._train, unit)] = unit
                    self._collect(flying)
                    watch(self.progress)
            except KeyboardInterrupt:
                raise Interrupted from None
            finally:
                self._stop.set()

    def _admissible(self, waiting: list[Unit], flying: list[Unit]) -> list[Unit]:
        """The next units, longest first, that find a lane and memory; one always does."""
        chosen: list[Unit] = []
        for unit in waiting:
            together = [*flying, *chosen]
            fits = sum(other.bytes for other in together) + unit.bytes <= self.plan.memory
            blocked = unit.alone and any(other.alone for other in together)
            if not together or (fits and not blocked and len(together) < self.plan.lanes):
                chosen.append(unit)
        return chosen

    def _collect(self, flying: dict[Future, Unit]) -> None:
        done, _ = wait(flying, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            del flying[future]
            future.result()

    def _train(self, unit: Unit) -> None:
        """Train one unit to its end, or save it when asked to stop."""
        cells = [one.cell for one in unit.cells]
        name = _name(cells)
        training = Training([one.run for one in unit.cells], width=unit.width, devices=jax.devices()[:1])
        if unit.done:
            restore(training, [self.saved[cell.key] for cell in cells])
        saved = time.monotonic()
        while not training.finished:
            before = training.done
            training.advance()
            with self._lock:
                self.progress.rounds_done += (training.done - before) * len(cells)
            stopping = self._stop.is_set()
            if not training.finished and (stopping or time.monotonic() - saved > CHECKPOINT_SECONDS):
                with self._lock:
                    self.store.save(name, cells, training)
                saved = time.monotonic()
            if stopping and not training.finished:
                return
        results = training.results()
        with self._lock:
            self.store.finish(name, cells, results)
            self.progress.runs_done += len(cells)
            self.progress.rounds_done += (training.rounds - training.done) * len(cells)
            self.progress.diverged += sum(result.diverged_at is not None for result in results)


def _name(cells: Sequence[Cell]) -> str:
    return hashlib.sha256("".join(cell.key for cell in cells).encode()).hexdigest()[:12]
