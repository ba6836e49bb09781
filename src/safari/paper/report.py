"""Which page a directory gets: a reproduction's, a sweep's, a comparison's or a run's."""

import datetime
from pathlib import Path
from typing import Any

import polars as pl

from safari.errors import InputError
from safari.experiment.checksums import SPEC, is_checked, is_there, read_checked, read_spec, read_table
from safari.experiment.compare import FINISHED, is_comparison
from safari.experiment.directory import SUMMARY
from safari.experiment.finished import finished_row
from safari.experiment.sweep import read_sweep
from safari.experiment.sweep.store import CELLS, RESULTS
from safari.paper.directory import is_reproduction, read_reproduction
from safari.paper.page import reproduction_page
from safari.report.finished_page import finished_page
from safari.report.page import Page
from safari.report.sweep_page import sweep_page


def page_of(directory: Path) -> Page:
    """Raises `InputError` if the directory is none of ours."""
    if not (directory / SPEC).is_file():
        raise InputError(
            "directory", str(directory), "is not a directory that safari made (no spec.toml in it)"
        )
    tables, spec = read_spec(directory), read_checked(directory / SPEC).decode()
    if is_reproduction(directory):
        found = read_reproduction(directory)
        return reproduction_page(found, spec, _facts(directory, found.finished))
    if is_there(directory / CELLS):
        cells, finished = read_sweep(directory)
        done = set(finished["cell"])
        missing = [_words(cell.settings) for cell in cells if cell.key not in done]
        kind = "Comparison" if is_comparison(directory) else "Sweep"
        return sweep_page(f"{kind} {directory.name}", finished, missing, spec, _facts(directory, finished))
    if FINISHED in tables:
        results = _compared(directory)
        return finished_page(f"Comparison {directory.name}", results, spec, _facts(directory, results))
    complete = is_there(directory / SUMMARY)
    results = pl.DataFrame([finished_row(directory)] if complete else [], infer_schema_length=None)
    missing = [] if complete else [str(directory)]
    return sweep_page(f"Run {directory.name}", results, missing, spec, _facts(directory, results))


def _compared(directory: Path) -> pl.DataFrame:
    """The finished runs that were put side by side here."""
    if not (directory / RESULTS).is_file():
        raise InputError("directory", str(directory), f"has no {RESULTS}; compare the runs again")
    return read_table(directory / RESULTS)


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.rsplit('.', 1)[-1]} = {value}" for name, value in settings.items())


def _facts(directory: Path, finished: pl.DataFrame) -> dict[str, str]:
    tables = read_spec(directory)
    made = {name: str(value) for name, value in tables.get("made", {}).items()}
    versions = {name: str(value) for name, value in tables.get("versions", {}).items()}
    sums = "agree" if is_checked(directory) else "none were kept when this was made: files are unchecked"
    if not len(finished):
        return {"runs": "0", **made, "checksums": sums, **versions}
    return {
        **made,
        "runs": str(len(finished)),
        "devices": ", ".join(sorted(set(finished["device"]))),
        "precision": ", ".join(sorted(set(finished["precision"]))),
        "seconds training": f"{finished['train_seconds'].sum():,.1f}",
        "seconds compiling": f"{finished['compile_seconds'].sum():,.1f}",
        "checksums": sums,
        "page made": datetime.date.today().isoformat(),
        **versions,
    }
