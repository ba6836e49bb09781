"""Sweeps: begun in a new directory, or gone on with; finished cells are never redone."""

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import polars as pl
import tomli_w

from safari.data import Federation
from safari.devices import host
from safari.experiment.directory import Directory, refuse_existing
from safari.experiment.sweep.cells import Cell, SweepSpec, in_cell
from safari.experiment.sweep.places import Place, Threads
from safari.experiment.sweep.planner import Plan, Prepared, make_plan
from safari.experiment.sweep.store import (
    CELLS,
    Saved,
    Store,
    in_order,
    plan_bytes,
    read_finished,
    read_plan,
)
from safari.experiment.sweep.work import Watcher, Work, progress_of
from safari.experiment.versions import provenance, versions


def new_sweep(
    spec: SweepSpec, out: Path, watch: Watcher, about: dict[str, Any], place: Place | None = None
) -> pl.DataFrame:
    """Carry `spec` out in the new directory `out`; nothing is written unless every cell is sound.

    Args:
        spec: the runs.
        out: the directory to make; this process alone writes to it.
        watch: called about twice a second.
        about: goes into its spec.toml.
        place: where the runs are trained (default: in threads of this process).
    """
    refuse_existing(out)
    cells = spec.cells()
    prepared = prepare_cells(cells, {})
    plan = _plan(prepared, place)
    about = {**about, "made": provenance(), "versions": versions()}
    with Directory.create(out, tomli_w.dumps(about), {CELLS: plan_bytes(spec)}) as directory:
        return _carry_out(Store(directory), cells, plan, {}, watch, place)


def resume_sweep(
    path: Path, watch: Watcher, warn: Callable[[str], None] = warnings.warn, place: Place | None = None
) -> pl.DataFrame:
    """Go on with the sweep in `path`; finished cells are left as they are.

    `warn` is told of states that are damaged, where those before them are taken. `place` is as in
    `new_sweep`, and need not be where the sweep began.
    """
    with Directory.open(path, warn) as directory:
        directory.sweep()
        directory.read_spec()
        store = Store(directory)
        cells = read_plan(path).cells()
        finished = set(read_finished(path)["cell"])
        saved = store.load_saved(finished)
        prepared = prepare_cells([cell for cell in cells if cell.key not in finished], saved)
        plan = _plan(prepared, place)
        return _carry_out(store, cells, plan, saved, watch, place)


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


def _plan(prepared: Sequence[Prepared], place: Place | None) -> Plan:
    """The plan for a place, which is then open, if there is something to train."""
    plan = make_plan(prepared, place.parts if place else 1)
    if place is not None and plan.units:
        place.open()
    return plan


def _carry_out(
    store: Store,
    cells: list[Cell],
    plan: Plan,
    saved: dict[str, Saved],
    watch: Watcher,
    place: Place | None,
) -> pl.DataFrame:
    try:
        with Threads() if place is None else nullcontext(place) as where:
            Work(store, plan, saved, progress_of(cells, plan), where).work(watch)
    finally:
        results = store.write_results(cells)
    return results
