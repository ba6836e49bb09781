"""A reproduction's directory: which tables it is for, and the runs it has so far."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import tomli_w

from safari.errors import InputError, check
from safari.experiment.checksums import SPEC, read_spec
from safari.experiment.directory import Directory
from safari.experiment.sweep import SweepSpec, read_sweep
from safari.experiment.sweep.merge import made_together
from safari.experiment.sweep.store import CELLS, plan_bytes, read_plan
from safari.experiment.versions import provenance
from safari.paper.compare import Comparison, Results, all_comparisons
from safari.paper.effects import Effect, effects_of
from safari.paper.numbers import paper_tables
from safari.paper.protocol import DATASETS
from safari.paper.recipes import datasets_of

REPRODUCE = "reproduce"


@dataclass(frozen=True)
class Reproduction:
    """What was to be redone, and how far it is."""

    tables: tuple[str, ...]
    datasets: frozenset[str]
    planned: int
    finished: pl.DataFrame
    results: Results

    @property
    def whole(self) -> bool:
        """Whether all tables of its data sets were asked for."""
        known = {key for key in paper_tables() if datasets_of(key) & self.datasets}
        return known <= set(self.tables)

    def comparisons(self) -> dict[str, list[Comparison]]:
        return all_comparisons(self.results, self.tables, set(self.datasets))

    def effects(self) -> list[Effect]:
        return effects_of(self.results, set(self.datasets))


def describe(names: list[str], tables: tuple[str, ...], seeds: int | None, fixed_partition: bool) -> dict:
    """What goes into spec.toml."""
    asked = [name for name in names if name in DATASETS]
    found = sorted(set(asked) if asked else {name for key in tables for name in datasets_of(key)})
    table = {"tables": list(tables), "datasets": found, "fixed_partition": fixed_partition}
    return {REPRODUCE: table | ({} if seeds is None else {"seeds": seeds})}


def missing_runs(path: Path, spec: SweepSpec) -> SweepSpec:
    """What of `spec` is not planned in the reproduction in `path` yet."""
    planned = {cell.key for cell in read_plan(path).cells()}
    return SweepSpec(spec.base, tuple(cell.settings for cell in spec.cells() if cell.key not in planned))


def extend_reproduction(path: Path, spec: SweepSpec, about: dict) -> None:
    """Plan the runs of `spec` in the reproduction in `path` too; `about` is from `describe`."""
    with Directory.open(path) as directory:
        given = directory.read_spec()
        ours, more = given[REPRODUCE], about[REPRODUCE]
        check(
            ours["fixed_partition"] == more["fixed_partition"], "--fixed-partition", more["fixed_partition"],
            f"{path} has it {ours['fixed_partition']}",
        )  # fmt: skip
        table = {
            **ours,
            "tables": list(dict.fromkeys([*ours["tables"], *more["tables"]])),
            "datasets": sorted({*ours["datasets"], *more["datasets"]}),
        }
        if "seeds" in ours:
            table["seeds"] = max(
                ours["seeds"], more.get("seeds", max(one.seeds for one in DATASETS.values()))
            )
        plan = SweepSpec(spec.base, (*read_plan(path).settings, *missing_runs(path, spec).settings))
        made = made_together([given.get("made", {}), provenance()])
        # In this order a kill in between leaves more runs planned, and the same command puts the rest right.
        directory.write(CELLS, plan_bytes(plan))
        directory.write(SPEC, tomli_w.dumps({**given, REPRODUCE: table, "made": made}).encode())


def is_reproduction(path: Path) -> bool:
    return (path / SPEC).is_file() and REPRODUCE in read_spec(path)


def read_reproduction(path: Path) -> Reproduction:
    if not (path / SPEC).is_file() or REPRODUCE not in read_spec(path):
        raise InputError("--resume", str(path), "was not made by `safari reproduce`")
    spec = read_spec(path)
    table = spec[REPRODUCE]
    cells, finished = read_sweep(path)
    seeds = table.get("seeds", max(entry.seeds for entry in DATASETS.values()))
    results = Results(finished, seeds, table["fixed_partition"])
    return Reproduction(tuple(table["tables"]), frozenset(table["datasets"]), len(cells), finished, results)
