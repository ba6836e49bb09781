"""The directory of a sweep, and what is in it.

    spec.toml             what was asked for, and the versions that wrote it
    cells.json            the base spec, and what each cell sets beyond it
    finished/*.parquet    a row a finished cell, its history in lists; NAME.CHECKSUM.parquet
    unfinished/*/         states of runs in progress, the last two
    results.parquet       all finished cells, once the sweep is through or stops
    SHA256SUMS            the checksums of the files beside it

A cell is named by what it computes, so a directory can be copied to another machine and
gone on with there, and what several machines finished can be put together by copying files.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.devices import kind, on_cpu
from safari.engine import Log, Training
from safari.errors import InputError
from safari.experiment.checkpoint import pack_table
from safari.experiment.checksums import (
    Damaged,
    digest,
    parse_table,
    read_json,
    reading,
)
from safari.experiment.directory import Directory, write_file
from safari.experiment.sweep.cells import Cell, SweepSpec
from safari.experiment.versions import commit
from safari.models import named_leaves
from safari.report.metric_names import own_column

CELLS, FINISHED, UNFINISHED, RESULTS = "cells.json", "finished", "unfinished", "results.parquet"
STATE, HISTORY, ABOUT = "state.safetensors", "history.parquet", "about.json"
SIGNED = 16
"""So many digits of its checksum stand in the name of a file of finished cells."""
REDONE = "is damaged; remove it, its runs are then redone"
CURVE = (
    "round", "kind", "q", "accuracy", "balanced_accuracy", "macro_f1", "recall", "accuracy_round",
    "loss_round",
)  # fmt: skip
"""The columns of a history that a sweep keeps, at the rounds that were evaluated."""
BY_CLASS = {"recall": "recall", "precision": "class_precision", "exposure": "exposure"}
"""What a summary has by class name, and what it is called in a row: a list, in the order of `classes`."""

BY_CLIENT = ("samples", "accuracy", "balanced_accuracy")
"""What a summary has by client, and a row as lists, in the order of its `clients`."""


@dataclass(frozen=True)
class Saved:
    """How far a cell had come when its state was saved."""

    done: int
    leaves: dict[str, np.ndarray]
    history: pl.DataFrame


class Store:
    """Reads and writes the parts of a sweep's directory."""

    def __init__(self, directory: Directory):
        self.directory = directory
        self._held: dict[str, set[str]] = {}

    @property
    def path(self) -> Path:
        return self.directory.path

    def write_plan(self, spec: SweepSpec) -> None:
        self.directory.write(CELLS, plan_bytes(spec))

    def finish(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Note that cells are finished, a row each; their saved states are no longer needed."""
        table = pl.DataFrame(list(rows), infer_schema_length=None)
        write_rows(self.path, name, table.cast({"diverged_at": pl.Int64, "stopped_at": pl.Int64}))
        self._superseded({row["cell"] for row in rows}, keep=None)

    def save(self, name: str, keys: Sequence[str], done: int, files: dict[str, bytes]) -> None:
        """Save how far runs that train together have come: what `pack_state` made of them."""
        self.directory.save_checkpoint(done, files, f"{UNFINISHED}/{name}")
        self._held[name] = set(keys)
        self._superseded(set(keys), keep=name)

    def _superseded(self, keys: set[str], keep: str | None) -> None:
        """Drop saved states that nobody needs now that `keys` are finished or saved anew."""
        for name in [name for name in self._held if name != keep]:
            self._held[name] -= keys
            if not self._held[name]:
                del self._held[name]
                shutil.rmtree(self.path / UNFINISHED / name, ignore_errors=True)

    def load_saved(self, finished: set[str]) -> dict[str, Saved]:
        """The latest saved state of every cell that is not finished."""
        latest: dict[str, Saved] = {}
        for folder in sorted((self.path / UNFINISHED).glob("*")):
            files = self.directory.load_checkpoint(f"{UNFINISHED}/{folder.name}")
            if files is None:
                continue
            with reading(folder, f"is damaged; remove {folder}, its runs then begin anew"):
                saved = unpack_state(files)
            self._held[folder.name] = set(saved)
            for key, one in saved.items():
                if key not in finished and (key not in latest or latest[key].done < one.done):
                    latest[key] = one
        return latest

    def write_results(self, cells: Sequence[Cell]) -> pl.DataFrame:
        """Put the finished cells together, in the order of the plan."""
        results = in_order(read_finished(self.path), cells)
        self.directory.write(RESULTS, pack_table(with_settings(results)))
        return results


def pack_state(cells: Sequence[Cell], training: Training) -> dict[str, bytes]:
    """How far runs that train together have come, as files."""
    carries = [dict(named_leaves(carry)) for carry in training.carries()]
    stacked = {leaf: np.stack([carry[leaf] for carry in carries]) for leaf in carries[0]}
    histories = [
        history.with_columns(pl.lit(cell.key).alias("cell"))
        for cell, history in zip(cells, training.histories(), strict=True)
    ]
    keys = [cell.key for cell in cells]
    return {
        STATE: save_tensors(stacked),
        HISTORY: pack_table(pl.concat(histories)),
        ABOUT: json.dumps({"cells": keys, "done": training.done}).encode(),
    }


def unpack_state(files: dict[str, bytes]) -> dict[str, Saved]:
    """The cells of a saved state, by their names."""
    about, stacked, history = (
        json.loads(files[ABOUT]),
        load_tensors(files[STATE]),
        parse_table(files[HISTORY]),
    )
    return {
        key: Saved(
            about["done"],
            {name: leaf[place] for name, leaf in stacked.items()},
            history.filter(pl.col("cell") == key).drop("cell"),
        )
        for place, key in enumerate(about["cells"])
    }


def restore(training: Training, saved: Sequence[Saved]) -> None:
    """Put a fresh training where its runs had come to."""
    like = training.carries()[0]
    names = [name for name, _ in named_leaves(like)]
    for one in saved:
        if sorted(one.leaves) != sorted(names):
            raise InputError("--resume", UNFINISHED, "holds states of other runs than cells.json describes")
    structure = jax.tree.structure(like)
    carries = [jax.tree.unflatten(structure, [one.leaves[name] for name in names]) for one in saved]
    training.restore(carries, [one.history for one in saved], saved[0].done)


def plan_bytes(spec: SweepSpec) -> bytes:
    """What cells.json holds."""
    return json.dumps({"base": spec.base, "cells": list(spec.settings)}, indent=0).encode()


def read_plan(path: Path) -> SweepSpec:
    if not (path / CELLS).is_file():
        raise InputError("--resume", str(path), f"is not a sweep (no {CELLS} in it)")
    plan = read_json(path / CELLS)
    with reading(path / CELLS):
        return SweepSpec(plan["base"], tuple(plan["cells"]))


def read_finished(path: Path) -> pl.DataFrame:
    """All finished cells of a sweep's directory, each once."""
    files = finished_files(path)
    if not files:
        return pl.DataFrame(schema={"cell": pl.String})
    together = pl.concat([read_rows(file) for file in files], how="diagonal_relaxed")
    return together.unique("cell", keep="first", maintain_order=True)


def finished_files(path: Path) -> list[Path]:
    return sorted((path / FINISHED).glob("[!.]*.parquet"))


def write_rows(path: Path, name: str, rows: pl.DataFrame) -> None:
    """Write finished cells into a file that bears its checksum in its name, wherever it is copied."""
    content = pack_table(rows)
    write_file(path / FINISHED / f"{name}.{digest(content)[:SIGNED]}.parquet", content)


def read_rows(file: Path) -> pl.DataFrame:
    """The finished cells of one file; those of older versions have no checksum."""
    content, (_, *signed) = file.read_bytes(), file.stem.split(".")
    if signed and digest(content)[:SIGNED] != signed[0]:
        raise Damaged(file, REDONE)
    with reading(file, REDONE):
        rows = parse_table(content)
        rows["cell"]
        return rows


def in_order(finished: pl.DataFrame, cells: Sequence[Cell]) -> pl.DataFrame:
    """The rows of `cells`, in their order."""
    return pl.DataFrame({"cell": [cell.key for cell in cells]}).join(
        finished, on="cell", how="inner", maintain_order="left"
    )


def with_settings(results: pl.DataFrame) -> pl.DataFrame:
    """The results with one column for each key that the sweep set, after the cell's name."""
    if not len(results):
        return results
    settings = [json.loads(text) for text in results["settings"]]
    names = dict.fromkeys(name for one in settings for name in one)
    columns = {
        name: [
            json.dumps(one[name]) if isinstance(one.get(name), list | dict) else one.get(name)
            for one in settings
        ]
        for name in names
    }
    table = pl.DataFrame(columns, infer_schema_length=None, strict=False)
    return pl.concat([results.select("cell"), table, results.drop("cell", "settings")], how="horizontal")


def row_of(cell: Cell, log: Log) -> dict[str, Any]:
    """A finished cell in one row: its settings, its numbers, its curve."""
    train = cell.spec.tables["train"]
    return {
        "cell": cell.key,
        "settings": json.dumps(cell.settings),
        "seed": train["seed"],
        "precision": _precision(train["precision"]),
        "device": kind(),
        "commit": commit(),
        **by_number(log.summary()),
        **curve_of(log.history),
    }


def by_number(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary with lists, in the order of `classes`, for what it has by class name, and so for clients.

    So tables of data sets with different classes can stand below one another.
    """
    row = {name: value for name, value in summary.items() if name not in (*BY_CLASS, "metrics", "clients")}
    row |= {own_column(name): value for name, value in summary.get("metrics", {}).items()}
    for name, column in BY_CLASS.items():
        found = summary.get(name)
        row[column] = None if found is None else list(found.values())
    took_part = row.pop("participation", None)
    if took_part is not None:
        row["participants"] = [one["name"] for one in took_part]
        row |= {name: [one[name] for one in took_part] for name in ("asked", "answered")}
    clients = summary.get("clients")
    if clients is not None:
        row["clients"] = list(clients)
        row |= {f"client_{name}": [one[name] for one in clients.values()] for name in BY_CLIENT}
    return row


def curve_of(history: pl.DataFrame) -> dict[str, list[Any]]:
    """The curves of a history; an old one may lack some."""
    curve = history.filter(pl.col("accuracy").is_not_null())
    return {f"curve_{name}": curve[name].to_list() for name in CURVE if name in curve.columns}


def _precision(asked: str) -> str:
    """What was computed with: a CPU has no tf32."""
    return "float32" if asked == "tf32" and on_cpu() else asked
