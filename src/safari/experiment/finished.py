"""Finished runs as rows of a table: settings, numbers, curve."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from safari.experiment.checksums import is_there, read_json, read_spec, read_table, reading
from safari.experiment.directory import METRICS, SUMMARY
from safari.experiment.sweep.store import by_number, curve_of

NO_SETTINGS = ("made", "versions")
"""Tables of a spec.toml that say how a run was made, not what it is."""


def is_finished(folder: Path) -> bool:
    """Whether the run in a directory is over. The summary of a fleet is there earlier, and says so."""
    return is_there(folder / SUMMARY) and read_json(folder / SUMMARY).get("status", "finished") == "finished"


def finished_row(folder: Path) -> dict[str, Any]:
    """A finished run as a sweep has it."""
    tables = read_spec(folder)
    with reading(folder / METRICS):
        curves = curve_of(read_table(folder / METRICS))
    train = tables["train"]
    return {
        "settings": json.dumps({"algorithm.name": tables["algorithm"]["name"], "train.seed": train["seed"]}),
        "seed": train["seed"],
        "precision": train.get("precision", "float32"),
        "device": tables["versions"]["device"],
        **by_number(read_json(folder / SUMMARY)),
        **curves,
    }


def side_by_side(folders: list[Path]) -> pl.DataFrame:
    """A row a run: its folder, all its settings in `spec`, and what a sweep has of it."""
    rows = [
        {"run": str(folder), "spec": json.dumps(_flat(read_spec(folder))), **finished_row(folder)}
        for folder in folders
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"algorithm.q": 0.8, ...}`"""
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.") if prefix or name not in NO_SETTINGS else {}
        else:
            flat[f"{prefix}{name}"] = value
    return flat
