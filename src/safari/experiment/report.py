"""The report page of a directory: a run's, a comparison's or a sweep's."""

import datetime
from pathlib import Path
from typing import Any

import polars as pl

from safari.errors import InputError
from safari.experiment.checksums import SPEC, is_checked, is_there, read_checked, read_spec, read_table
from safari.experiment.compare import FINISHED
from safari.experiment.directory import METRICS
from safari.experiment.finished import finished_row, is_finished
from safari.experiment.sweep import read_sweep
from safari.experiment.sweep.store import CELLS, RESULTS
from safari.report.finished_page import finished_page
from safari.report.page import Page
from safari.report.run_page import run_page, unfinished_page
from safari.report.sweep_page import sweep_page
from safari.report.titles import title_of


def page_of(directory: Path) -> Page:
    """The page of what is in `directory`, as far as it is finished."""
    tables, spec = read_spec(directory), read_checked(directory / SPEC).decode()
    if is_there(directory / CELLS):
        cells, finished = read_sweep(directory)
        done = set(finished["cell"])
        missing = [_words(cell.settings) for cell in cells if cell.key not in done]
        title = title_of(tables, [cell.settings for cell in cells])
        return sweep_page(title, finished, missing, spec, facts_of(directory, finished))
    if FINISHED in tables:
        results = _compared(directory)
        return finished_page(f"{len(results)} runs side by side", results, spec, facts_of(directory, results))
    title = title_of(tables)
    if not is_finished(directory):
        return unfinished_page(title, str(directory), spec, facts_of(directory, pl.DataFrame()))
    row, history = finished_row(directory), read_table(directory / METRICS)
    facts = facts_of(directory, pl.DataFrame([row], infer_schema_length=None))
    return run_page(title, row, history, spec, facts)


def _compared(directory: Path) -> pl.DataFrame:
    """The finished runs that were put side by side here."""
    if not (directory / RESULTS).is_file():
        raise InputError("directory", str(directory), f"has no {RESULTS}; compare the runs again")
    return read_table(directory / RESULTS)


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.rsplit('.', 1)[-1]} = {value}" for name, value in settings.items())


def facts_of(directory: Path, finished: pl.DataFrame) -> dict[str, str]:
    """How the runs were made, and what with."""
    tables = read_spec(directory)
    made = {name: str(value) for name, value in tables.get("made", {}).items()}
    versions = {name: str(value) for name, value in tables.get("versions", {}).items()}
    sums = "agree" if is_checked(directory) else "none were kept when this was made: files are unchecked"
    where = {"directory": str(directory)}
    if not len(finished):
        return {**where, **made, "runs": "0", "checksums": sums, **versions}
    return {
        **where,
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
