"""Several algorithms under the same seeds, side by side: a sweep over algorithms; or finished runs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from safari.errors import InputError, check, check_count
from safari.experiment.checkpoint import pack_table
from safari.experiment.checksums import SPEC, read_spec, read_table
from safari.experiment.directory import CURVES, METRICS, Directory, write_file
from safari.experiment.finished import is_finished, side_by_side
from safari.experiment.run import read_summary
from safari.experiment.schema import NAME
from safari.experiment.spec import complete, set_key
from safari.experiment.sweep.cells import ALGORITHM, MOST_RUNS, SEED, SweepSpec
from safari.experiment.sweep.store import RESULTS
from safari.experiment.writing import writing
from safari.registry import ALGORITHMS
from safari.report.curves import draw_comparison
from safari.report.metric_names import ACCURACY, Metric
from safari.report.statistics import estimate
from safari.report.sweeps import differences

TABLE, DIFFERENCES, FINISHED = "comparison.csv", "differences.csv", "finished"
COLUMNS = (
    "accuracy", "accuracy_round", "accuracy_round_last10", "accuracy_ceiling", "bytes_up", "bytes_down",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: a row an algorithm, means and deviations over the seeds.

    `differences` are to the first algorithm, paired over the seeds; None for finished runs.
    """

    path: Path
    table: pl.DataFrame
    differences: pl.DataFrame | None
    diverged: tuple[str, ...]


@dataclass(frozen=True)
class Compared:
    """One run of a comparison: what it is called in the table, its numbers, its curve, its algorithm."""

    label: str
    summary: dict[str, Any]
    curve: pl.DataFrame
    algorithm: str


def comparison_spec(given: dict[str, Any], algorithms: Sequence[str], seeds: int) -> SweepSpec:
    """The sweep that trains each algorithm under each seed; `given` is a spec that need not be complete.

    The client table of a spec is written for one method. It says so here, so that keys which only
    that method has are left out for the others.
    """
    check_count("--seeds", seeds, most=MOST_RUNS // max(len(algorithms), 1))
    check(bool(algorithms), "--algorithms", list(algorithms), "needs at least one")
    once = len(algorithms) == len(set(algorithms))
    check(once, "--algorithms", list(algorithms), "needs each once")
    for name in algorithms:
        ALGORITHMS.find(name, "--algorithms")
    whole = complete(given)
    clients = whole.tables["algorithm"].get("clients", {}).get(NAME)
    base = given if clients is None else set_key(given, ["algorithm", "clients", NAME], clients)
    return SweepSpec(
        base,
        tuple({ALGORITHM: name, SEED: whole.seed + number} for name in algorithms for number in range(seeds)),
    )


def about_comparison(given: dict[str, Any], algorithms: Sequence[str], seeds: int) -> dict[str, Any]:
    """What spec.toml says of a comparison."""
    return {"compare": {"algorithms": list(algorithms), "seeds": seeds}, **given}


def is_comparison(path: Path) -> bool:
    return (path / SPEC).is_file() and "compare" in read_spec(path)


def write_comparison(path: Path, results: pl.DataFrame, metrics: Sequence[Metric] = ()) -> Comparison:
    """Table and picture of a finished comparison, by these metrics beside what is always there."""
    runs = [_compared(row) for row in results.iter_rows(named=True)]
    table, picture = _table_and_picture(runs, metrics)
    write_file(path / TABLE, table.write_csv().encode())
    write_file(path / CURVES, picture)
    diverged = [f"{run.label}, seed {run.summary['seed']}" for run in runs if run.summary["diverged_at"]]
    apart = differences(results, metrics or (ACCURACY,))
    if apart is not None:
        write_file(path / DIFFERENCES, apart.write_csv().encode())
    return Comparison(path, table, apart, tuple(diverged))


def _compared(row: dict[str, Any]) -> Compared:
    curve = pl.DataFrame({"round": row["curve_round"], "accuracy": row["curve_accuracy"]})
    name = json.loads(row["settings"])[ALGORITHM]
    return Compared(name, row, curve, name)


@writing()
def compare_finished(paths: list[Path], out: Path, metrics: Sequence[Metric] = ()) -> Comparison:
    """Put finished runs side by side, simulated or deployed; each is a row of its own.

    What is shown of them goes into the directory: the runs may be moved afterwards.
    """
    for path in paths:
        if not is_finished(path):
            raise InputError(
                "compare", str(path), "is no finished run (no summary.json in it, or it is still running)"
            )
    runs = [_finished(path) for path in paths]
    table, picture = _table_and_picture(runs, metrics)
    files = {
        TABLE: table.write_csv().encode(),
        CURVES: picture,
        RESULTS: pack_table(side_by_side(paths)),
    }
    Directory.create(out, tomli_w.dumps({FINISHED: [str(path) for path in paths]}), files).close()
    return Comparison(out, table, None, ())


def _finished(path: Path) -> Compared:
    name = read_spec(path)["algorithm"]["name"]
    return Compared(str(path), read_summary(path), read_table(path / METRICS), name)


def _table_and_picture(runs: Sequence[Compared], metrics: Sequence[Metric]) -> tuple[pl.DataFrame, bytes]:
    curves: dict[str, list[pl.DataFrame]] = {}
    for run in runs:
        curves.setdefault(run.label, []).append(run.curve)
    ceilings = [run.summary["accuracy_ceiling"] for run in runs]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    ceiling, algorithms = (
        sum(known) / len(known) if known else None,
        {run.label: run.algorithm for run in runs},
    )
    return tabulate(runs, metrics), draw_comparison(curves, ceiling, algorithms)


def tabulate(runs: Sequence[Compared], metrics: Sequence[Metric] = ()) -> pl.DataFrame:
    """A row an algorithm: number of runs, then mean and deviation of each column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault(run.label, []).append(run.summary)
    numbers = {name: itemgetter(name) for name in COLUMNS} | {one.name: one.of for one in metrics}
    both = [f"{name}_{what}" for name in numbers for what in ("mean", "std")]
    rows = [
        (label, len(found), *(number for of in numbers.values() for number in _over_seeds(found, of)))
        for label, found in groups.items()
    ]
    schema = {"algorithm": pl.String, "runs": pl.Int64, **dict.fromkeys(both, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row")


def _over_seeds(
    runs: list[dict[str, Any]], of: Callable[[dict[str, Any]], float | None]
) -> tuple[float | None, float | None]:
    """Mean and deviation of a number; None where too few runs know it."""
    known = [value for value in map(of, runs) if value is not None]
    if not known:
        return None, None
    found = estimate(known)
    return found.mean, found.deviation if found.count > 1 else None
