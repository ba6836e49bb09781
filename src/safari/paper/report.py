"""Which page a directory gets: a reproduction's, a sweep's, a comparison's or a run's."""

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl

from safari.errors import InputError
from safari.experiment.compare import is_comparison
from safari.experiment.directory import METRICS, SPEC, SUMMARY
from safari.experiment.sweep import read_sweep
from safari.experiment.sweep.store import CELLS, CURVE
from safari.paper.directory import is_reproduction, read_reproduction
from safari.paper.page import reproduction_page
from safari.report.page import Page
from safari.report.sweep_page import sweep_page


def page_of(directory: Path) -> Page:
    """Raises `InputError` if the directory is none of ours."""
    if not (directory / SPEC).is_file():
        raise InputError(
            "directory", str(directory), "is not a directory that safari made (no spec.toml in it)"
        )
    spec = (directory / SPEC).read_text(encoding="utf-8")
    if is_reproduction(directory):
        found = read_reproduction(directory)
        return reproduction_page(found, spec, _facts(spec, found.finished))
    if (directory / CELLS).is_file():
        cells, finished = read_sweep(directory)
        done = set(finished["cell"])
        missing = [_words(cell.settings) for cell in cells if cell.key not in done]
        kind = "Comparison" if is_comparison(directory) else "Sweep"
        return sweep_page(f"{kind} {directory.name}", finished, missing, spec, _facts(spec, finished))
    complete = (directory / SUMMARY).is_file()
    results = pl.DataFrame([_row(directory)] if complete else [], infer_schema_length=None)
    missing = [] if complete else [str(directory)]
    return sweep_page(f"Run {directory.name}", results, missing, spec, _facts(spec, results))


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name.rsplit('.', 1)[-1]} = {value}" for name, value in settings.items())


def _row(folder: Path) -> dict[str, Any]:
    """A finished run as a sweep has it: settings, numbers, curve."""
    tables = tomllib.loads((folder / SPEC).read_text(encoding="utf-8"))
    curve = pl.read_parquet(folder / METRICS).filter(pl.col("accuracy").is_not_null())
    train = tables["train"]
    return {
        "settings": json.dumps({"algorithm.name": tables["algorithm"]["name"], "train.seed": train["seed"]}),
        "seed": train["seed"],
        "precision": train.get("precision", "float32"),
        "device": tables["versions"]["device"],
        **json.loads((folder / SUMMARY).read_text(encoding="utf-8")),
        **{f"curve_{name}": curve[name].to_list() for name in CURVE},
    }


def _facts(spec: str, finished: pl.DataFrame) -> dict[str, str]:
    tables = tomllib.loads(spec)
    made = {name: str(value) for name, value in tables.get("made", {}).items()}
    versions = {name: str(value) for name, value in tables.get("versions", {}).items()}
    if not len(finished):
        return {"runs": "0", **made, **versions}
    return {
        **made,
        "runs": str(len(finished)),
        "devices": ", ".join(sorted(set(finished["device"]))),
        "precision": ", ".join(sorted(set(finished["precision"]))),
        "seconds training": f"{finished['train_seconds'].sum():,.1f}",
        "seconds compiling": f"{finished['compile_seconds'].sum():,.1f}",
        "page made": datetime.date.today().isoformat(),
        **versions,
    }
