"""Several algorithms under the same seeds, side by side."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from safari.errors import InputError, check, check_count
from safari.experiment.checkpoint import pack_table
from safari.experiment.directory import CURVES, METRICS, SPEC, SUMMARY, Directory, refuse_existing
from safari.experiment.finished import side_by_side
from safari.experiment.run import Watcher, new_run, read_summary, resume_run
from safari.experiment.spec import complete, with_algorithm
from safari.experiment.sweep.store import RESULTS
from safari.report.curves import draw_comparison
from safari.report.statistics import estimate
from safari.training import Diverged

TABLE, FINISHED = "comparison.csv", "finished"
COLUMNS = ("accuracy", "accuracy_last", "accuracy_mean_last10", "accuracy_ceiling", "bytes_up", "bytes_down")


@dataclass(frozen=True)
class Comparison:
    """What a comparison found: a row an algorithm, means and deviations over the seeds."""

    path: Path
    table: pl.DataFrame
    diverged: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    algorithm: str
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.algorithm}/seed-{self.seed}"


def compare(
    given: dict[str, Any],
    algorithms: list[str],
    seeds: int,
    out: Path,
    watch: Callable[[Cell], Watcher],
) -> Comparison:
    """Train each algorithm under each seed; `given` is a spec that need not be complete."""
    refuse_existing(out)
    check_count("--seeds", seeds)
    check(bool(algorithms), "--algorithms", algorithms, "needs at least one")
    check(len(algorithms) == len(set(algorithms)), "--algorithms", algorithms, "needs each once")
    first = complete(given).seed
    cells = [Cell(name, first + number) for name in algorithms for number in range(seeds)]
    for name in algorithms:
        complete(with_algorithm(given, name, first)).prepare()
    plan = {"spec": given, "compare": {"algorithms": algorithms, "first_seed": first, "seeds": seeds}}
    with Directory.create(out, tomli_w.dumps(plan)) as directory:
        return _compare(given, cells, directory, watch)


def resume_comparison(path: Path, watch: Callable[[Cell], Watcher]) -> Comparison:
    """Go on with a comparison; finished runs are left as they are."""
    with Directory.open(path) as directory:
        directory.sweep()
        plan = tomllib.loads((path / SPEC).read_text(encoding="utf-8"))
        if "compare" not in plan:
            raise InputError(
                "--resume",
                str(path),
                "is no comparison; use `safari run --resume` or `safari sweep --resume`",
            )
        table = plan["compare"]
        seeds = range(table["first_seed"], table["first_seed"] + table["seeds"])
        cells = [Cell(name, seed) for name in table["algorithms"] for seed in seeds]
        return _compare(plan["spec"], cells, directory, watch)


def _compare(
    given: dict[str, Any],
    cells: list[Cell],
    directory: Directory,
    watch: Callable[[Cell], Watcher],
) -> Comparison:
    diverged = []
    for cell in cells:
        watcher = watch(cell)
        path = directory.path / cell.folder
        try:
            if path.exists():
                resume_run(path, watcher, warn=lambda _: None)
            else:
                new_run(complete(with_algorithm(given, cell.algorithm, cell.seed)), path, watcher)
        except Diverged:
            diverged.append(cell.folder)
    summaries = {cell: read_summary(directory.path / cell.folder) for cell in cells}
    histories = {cell: pl.read_parquet(directory.path / cell.folder / METRICS) for cell in cells}
    table = _write(directory, summaries, histories)
    return Comparison(directory.path, table, tuple(diverged))


def compare_finished(paths: list[Path], out: Path) -> Comparison:
    """Put finished runs side by side, simulated or deployed; each is a row of its own.

    What is shown of them goes into the directory: the runs may be moved afterwards.
    """
    cells = {Cell(str(path), 0): path for path in paths}
    for path in paths:
        if not (path / SUMMARY).is_file():
            raise InputError("compare", str(path), "is no finished run (no summary.json in it)")
    summaries = {cell: read_summary(path) for cell, path in cells.items()}
    histories = {cell: pl.read_parquet(path / METRICS) for cell, path in cells.items()}
    with Directory.create(out, tomli_w.dumps({FINISHED: [str(path) for path in paths]})) as directory:
        table = _write(directory, summaries, histories)
        directory.write(RESULTS, pack_table(side_by_side(list(cells.values()))))
    return Comparison(out, table, ())


def _write(
    directory: Directory, summaries: dict[Cell, dict[str, Any]], histories: dict[Cell, pl.DataFrame]
) -> pl.DataFrame:
    """The table of a comparison, and its picture."""
    table = tabulate(summaries)
    directory.write(TABLE, table.write_csv().encode())
    curves: dict[str, list[pl.DataFrame]] = {}
    for cell, history in histories.items():
        curves.setdefault(cell.algorithm, []).append(history)
    ceiling = [one["accuracy_ceiling"] for one in summaries.values() if one["accuracy_ceiling"] is not None]
    directory.write(CURVES, draw_comparison(curves, sum(ceiling) / len(ceiling) if ceiling else None))
    return table


def tabulate(summaries: dict[Cell, dict[str, Any]]) -> pl.DataFrame:
    """A row an algorithm: number of runs, then mean and deviation of each column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell, summary in summaries.items():
        groups.setdefault(cell.algorithm, []).append(summary)
    both = [f"{name}_{what}" for name in COLUMNS for what in ("mean", "std")]
    rows = [
        (algorithm, len(runs), *(number for name in COLUMNS for number in _over_seeds(runs, name)))
        for algorithm, runs in groups.items()
    ]
    schema = {"algorithm": pl.String, "runs": pl.Int64, **dict.fromkeys(both, pl.Float64)}
    return pl.DataFrame(rows, schema, orient="row")


def _over_seeds(runs: list[dict[str, Any]], name: str) -> tuple[float | None, float | None]:
    """Mean and deviation of a column; None where too few runs know it."""
    known = [run[name] for run in runs if run[name] is not None]
    if not known:
        return None, None
    found = estimate(known)
    return found.mean, found.deviation if found.count > 1 else None
