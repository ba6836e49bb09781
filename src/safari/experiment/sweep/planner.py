"""The planner: cells of equal shape become units, each one call of a compiled program.

Sizes that only bound something (the server's samples, the places of a cohort) are padded to
the largest of a group, so that cells which differ in them share a program.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import polars as pl

from safari.algorithms import Task
from safari.devices import cores, memory, on_cpu
from safari.engine import Run, shape_key
from safari.engine.size import bytes_of, check_fits
from safari.experiment.sweep.cells import Cell, in_cell

MEMORY_SHARE = 0.5
"""The part of a device's memory that units in flight may take by estimate."""

MOST_LANES = 8

LEAST_FILLED = 2 / 3
"""The part of a stacked cohort's places that must be taken at the least."""


@dataclass(frozen=True)
class Prepared:
    """A cell whose run is built; `done` rounds of it are behind already."""

    cell: Cell
    run: Run
    done: int = 0


@dataclass(frozen=True)
class Unit:
    """Cells that go through one compiled program together, `width` runs wide."""

    cells: tuple[Prepared, ...]
    width: int
    bytes: int
    work: float
    group: int
    alone: bool = False
    """Fills the device by itself: no other such unit beside it."""

    @property
    def done(self) -> int:
        return self.cells[0].done

    @property
    def rounds(self) -> int:
        return self.cells[0].run.rounds


@dataclass(frozen=True)
class Plan:
    """Units, the longest first, then as asked; and how many may be in flight at once."""

    units: tuple[Unit, ...]
    lanes: int
    memory: int

    def table(self) -> pl.DataFrame:
        """A row a group: its runs, and how they are put through its program."""
        groups: dict[int, list[Unit]] = {}
        for unit in self.units:
            groups.setdefault(unit.group, []).append(unit)
        return pl.DataFrame([_group_row(units) for units in groups.values()])


def _group_row(units: list[Unit]) -> dict[str, Any]:
    one = units[0].cells[0]
    tables = one.cell.spec.tables
    return {
        "data": Path(tables["data"]["source"]).stem,
        "model": tables["model"]["name"],
        "algorithm": tables["algorithm"]["name"],
        "places": one.run.roster.slots,
        "rounds": one.run.rounds - one.done,
        "runs": sum(len(unit.cells) for unit in units),
        "calls": len(units),
        "side_by_side": units[0].width,
        "bytes": units[0].bytes,
    }


def make_plan(prepared: Sequence[Prepared], parts: int = 1) -> Plan:
    """Group, pad, stack and split. The memory of a device is divided into so many parts, a unit each."""
    allowed = int(memory() * MEMORY_SHARE) // parts
    loose: dict[Any, list[Prepared]] = {}
    for one in prepared:
        loose.setdefault(_loose_key(one), []).append(one)
    groups = [band for group in loose.values() for band in _bands(group)]
    units = [unit for number, group in enumerate(groups) for unit in _split(_padded(group), allowed, number)]
    asked = {one.cell.key: place for place, one in enumerate(prepared)}
    units.sort(key=lambda unit: (-unit.work, asked[unit.cells[0].cell.key]))
    return Plan(tuple(units), _lanes(units), allowed)


def _lanes(units: Sequence[Unit]) -> int:
    """How many units run side by side.

    On a CPU a unit keeps about one core busy. On a GPU units take turns, but one compiles
    while another runs.
    """
    return max(1, min(cores(), len(units), MOST_LANES))


def _loose_key(one: Prepared) -> Any:
    """Equal for cells that one program can serve once they are padded."""
    run, federation = one.run, one.run.task.federation
    sizes = (
        federation.size,
        federation.largest,
        federation.median_size,
        federation.ragged,
        federation.augment,
        federation.validation_most > 0,
        federation.client_test is None,
    )
    not_the_source = ("partition", "server", "augment", "fold", "seed")
    data = {key: value for key, value in one.cell.spec.tables["data"].items() if key not in not_the_source}
    return (
        shape_key((run.algorithm, run.task.model, run.roster.availability, run.schedule, run.begins)),
        (
            run.task.precision,
            run.rounds,
            run.evaluate_every,
            run.deliver,
            run.patience,
            run.metrics,
            run.task.class_weights is None,
            one.done,
        ),
        (sizes, json.dumps(data, sort_keys=True)),
    )


def _bands(group: list[Prepared]) -> list[list[Prepared]]:
    """Cells whose cohorts are padded to one size: the largest first, and what comes near it.

    Empty places are trained in vain, another program has to be compiled. Where runs go one
    after another the program is the cheaper of the two.
    """
    least = LEAST_FILLED if _stacks(group[0].run) else 1.0
    bands: list[list[Prepared]] = []
    for one in sorted(group, key=lambda one: -one.run.roster.slots):
        if not bands or one.run.roster.slots < least * bands[-1][0].run.roster.slots:
            bands.append([])
        bands[-1].append(one)
    return bands


def _padded(group: list[Prepared]) -> list[Prepared]:
    held = max(len(one.run.task.federation.samples) for one in group)
    server_most = max(one.run.task.federation.server_most for one in group)
    validation_most = max(one.run.task.federation.validation_most for one in group)
    slots = max(one.run.roster.slots for one in group)

    def pad(one: Prepared) -> Prepared:
        federation = one.run.task.federation
        sizes = (len(federation.samples), federation.server_most, federation.validation_most)
        if (*sizes, one.run.roster.slots) == (held, server_most, validation_most, slots):
            return one
        federation = federation.padded(held, server_most, validation_most)
        roster = replace(one.run.roster, slots=slots)
        run = eqx.tree_at(lambda run: (run.task.federation, run.roster), one.run, (federation, roster))
        return replace(one, run=run)

    return [pad(one) for one in group]


def _split(group: list[Prepared], memory: int, number: int) -> list[Unit]:
    """Units of one width that fit the memory; single runs where stacking does not pay."""
    run = group[0].run
    with in_cell(group[0].cell.settings):
        check_fits(run)
    each = run_bytes(run)
    # Stacked runs share one data set; one that is scaled by the server's own draw is the run's alone.
    shared = len({_arrays_of(one.run) for one in group}) == 1
    most = max(1, memory // each) if _stacks(run) and shared else 1
    count = math.ceil(len(group) / most)
    width = math.ceil(len(group) / count)
    work = float(run.rounds - group[0].done) * width * _round_work(run)
    return [
        Unit(tuple(group[start : start + width]), width, width * each, work, number, _alone(run))
        for start in range(0, len(group), width)
    ]


def _arrays_of(run: Run) -> tuple[int, ...]:
    """Which arrays make up the data set of a run."""
    return tuple(id(leaf) for leaf in jax.tree.leaves(run.task.federation.dataset))


def _stacks(run: Run) -> bool:
    """Whether runs go through the program side by side, or one after another.

    On a CPU single runs on all cores are faster: stacked runs work both sides of every coin,
    and batched products of small matrices are slow there. Networks that fill a GPU by
    themselves gain nothing either.
    """
    return not on_cpu() and run.task.model.side_by_side


def _alone(run: Run) -> bool:
    return not on_cpu() and not _stacks(run)


def run_bytes(run: Run) -> int:
    """An estimate of what one run takes: what it holds, and its largest step.

    The step is counted as if no intermediate value of gradient and update were reused.
    """
    arrays = eqx.filter(run, eqx.is_array)
    held = bytes_of(arrays) - bytes_of(arrays.task.federation.dataset)
    params = jax.eval_shape(lambda: _init(run.task))
    copies = run.roster.slots if run.task.clients_batched(params) else 1
    state = 4 * bytes_of(params) + copies * 2 * bytes_of(params)
    return held + state + copies * _step_bytes(run, params)


def _step_bytes(run: Run, params: Any) -> int:
    task, size = run.task, _batch_size(run)
    dataset = task.federation.dataset
    x = jax.ShapeDtypeStruct((size, *dataset.shape), jnp.float32)

    def total_loss(params: Any, x: Any) -> Any:
        return jax.nn.logsumexp(task.logits(params, x), axis=1).sum()

    jaxpr = jax.make_jaxpr(jax.grad(total_loss))(params, x)
    inner = sum(bytes_of([out.aval for out in eqn.outvars]) for eqn in jaxpr.jaxpr.eqns)
    return inner + 2 * size * math.prod(dataset.shape) * 4


def _round_work(run: Run) -> float:
    """Proportional to the arithmetic of a round, to put long units first."""
    params = jax.eval_shape(lambda: _init(run.task))
    return run.roster.slots * run.task.federation.median_size * bytes_of(params) + 1.0


def _batch_size(run: Run) -> int:
    return max(getattr(part, "batch_size", 1) for part in run.algorithm.parts())


def _init(task: Task) -> Any:
    dataset = task.federation.dataset
    return task.model.init(jax.random.key(0), dataset.shape, dataset.classes)
