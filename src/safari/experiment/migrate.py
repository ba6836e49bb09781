"""Bringing specs and result directories of older versions up to date: `safari migrate PATH`."""

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from safari.errors import InputError
from safari.experiment.checkpoint import pack_table
from safari.experiment.checksums import SPEC, read_json, read_spec, read_table
from safari.experiment.directory import METRICS, SUMMARY, Directory, write_file
from safari.experiment.old_keys import MOVED
from safari.experiment.schema import keys_of
from safari.experiment.spec import parse_toml
from safari.experiment.sweep.cells import SweepSpec, flat, make_cell
from safari.experiment.sweep.store import (
    CELLS,
    UNFINISHED,
    Store,
    finished_files,
    read_plan,
    read_rows,
    write_rows,
)
from safari.experiment.writing import writing
from safari.registry import PARTITIONS

PARTITION = "data.partition"
COLUMN = {"client": "column"}
"""Partitions that have another name now."""

HISTORY = {"accuracy": "accuracy_round", "loss": "loss_round", "accuracy_synced": "accuracy"}
NUMBERS = {"accuracy_last": "accuracy_round", "accuracy_mean_last10": "accuracy_round_last10"}
CURVES = {f"curve_{old}": f"curve_{new}" for old, new in HISTORY.items()}


@writing()
def migrate(path: Path) -> str:
    """Rewrite what an older version wrote, in place; a spec's file is kept beside it as `.old`.

    Args:
        path: a spec, a run directory, or the directory of a sweep, comparison or reproduction.

    Returns:
        What was done, in one line.

    Raises:
        InputError: if there is nothing of ours at `path`.
    """
    if path.is_file():
        return _migrate_file(path)
    if (path / CELLS).is_file():
        return _migrate_sweep(path)
    if (path / SUMMARY).is_file():
        return _migrate_run(path)
    raise InputError("migrate", str(path), "is no spec, finished run or sweep of safari's")


def new_tables(given: dict[str, Any]) -> dict[str, Any]:
    """The tables of a spec, perhaps with a sweep's grid, by today's keys."""
    found = dict(given)
    if isinstance(given.get("data"), dict):
        found["data"] = _nested(new_settings(flat({"data": given["data"]})))["data"]
    grid = given.get("sweep", {}).get("grid")
    if grid is not None:
        renamed = {_new_name(name): value for name, value in flat(grid).items()}
        found["sweep"] = {**given["sweep"], "grid": _nested(renamed)}
    return found


def new_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a cell, keys as dotted paths, by today's keys.

    Keys that the chosen partition never looked at are left out.
    """
    found = {_new_name(name): value for name, value in settings.items()}
    name = found.get(f"{PARTITION}.name", "classes")
    found |= {f"{PARTITION}.name": COLUMN[name]} if name in COLUMN else {}
    cls = PARTITIONS.find(COLUMN.get(name, name), f"{PARTITION}.name")
    known = {f"{PARTITION}.{key}" for key in ("name", *keys_of(cls))}
    return {
        name: value for name, value in found.items() if not name.startswith(f"{PARTITION}.") or name in known
    }


def _new_name(name: str) -> str:
    table, _, key = name.partition(".")
    if name == PARTITION:
        return f"{PARTITION}.name"
    return f"data.{MOVED[key]}" if table == "data" and key in MOVED else name


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in settings.items():
        table = found
        *names, last = path.split(".")
        for name in names:
            table = table.setdefault(name, {})
        table[last] = value
    return found


def _migrate_file(path: Path) -> str:
    given = parse_toml(path)
    fresh = new_tables(given)
    if fresh == given:
        return f"{path} is up to date"
    kept = path.with_suffix(path.suffix + ".old")
    write_file(kept, path.read_bytes())
    write_file(path, tomli_w.dumps(fresh).encode())
    return f"{path} rewritten, without its comments; the old file is {kept}"


def _migrate_run(path: Path) -> str:
    with Directory.open(path) as directory:
        summary = read_json(path / SUMMARY)
        if "accuracy_last" not in summary:
            return f"{path} is up to date"
        directory.write(SPEC, tomli_w.dumps(new_tables(read_spec(path))).encode())
        history = read_table(path / METRICS)
        delivered = pl.coalesce("accuracy_synced", "accuracy").alias("accuracy_synced")
        directory.write(METRICS, pack_table(history.with_columns(delivered).rename(HISTORY)))
        numbers = {NUMBERS.get(name, name): value for name, value in summary.items()}
        directory.write_json(SUMMARY, {**numbers, "both_rounds": 0})
    return f"{path} rewritten"


def _migrate_sweep(path: Path) -> str:
    with Directory.open(path) as directory:
        plan, store = read_plan(path), Store(directory)
        fresh = SweepSpec(new_tables(plan.base), tuple(new_settings(one) for one in plan.settings))
        rows = 0
        for file in finished_files(path):
            table = read_rows(file)
            if "accuracy_last" in table.columns:
                write_rows(path, file.name.partition(".")[0], _new_rows(table, fresh.base))
                file.unlink()
                rows += len(table)
        if not rows and fresh == plan:
            return f"{path} is up to date"
        directory.write(SPEC, tomli_w.dumps(new_tables(read_spec(path))).encode())
        store.write_plan(fresh)
        store.write_results(fresh.cells())
        begun = len(list((path / UNFINISHED).glob("*")))
        shutil.rmtree(path / UNFINISHED, ignore_errors=True)
    lost = f"; {begun} that were begun start anew" if begun else ""
    return f"{path}: {rows} finished runs rewritten{lost}"


def _new_rows(table: pl.DataFrame, base: dict[str, Any]) -> pl.DataFrame:
    settings = [new_settings(json.loads(text)) for text in table["settings"]]
    delivered = [
        [now if synced is None else synced for synced, now in zip(*pair, strict=True)]
        for pair in zip(table["curve_accuracy_synced"], table["curve_accuracy"], strict=True)
    ]
    fresh = table.drop("accuracy_synced").rename({**NUMBERS, **CURVES})
    return fresh.with_columns(
        pl.Series("cell", [make_cell(base, one).key for one in settings]),
        pl.Series("settings", [json.dumps(one) for one in settings]),
        pl.Series("curve_accuracy", delivered, dtype=pl.List(pl.Float64)),
        pl.lit(0).alias("both_rounds"),
    )
