"""The cells of a sweep: a grid over a spec's keys, times seeds."""

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from safari.data.own import Stamp, stamp
from safari.data.reading import is_file_name
from safari.errors import InputError, check, check_count, check_seed
from safari.experiment.schema import Key, read_table
from safari.experiment.spec import Spec, apply_overrides, complete, read_toml, set_key

SWEEP = "sweep"
MOST_NAMED = 6
MOST_RUNS = 100_000
"""Of one sweep: all are checked before the first begins."""
SEED, DATA_SEED, EXCLUSION_SEED = "train.seed", "data.seed", "participation.seed"
ALGORITHM = "algorithm.name"


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: what it sets beyond the base spec, and the whole spec that follows."""

    settings: dict[str, Any]
    spec: Spec

    @cached_property
    def key(self) -> str:
        """Names the cell by what it computes, wherever the data lie: equal specs, equal keys.

        What is not set does not count, so that a key which a later version knows changes no name.
        """
        data = {**self.spec.tables["data"], "folder": None}
        for key in ("source", "server", "test"):
            if isinstance(data.get(key), str) and (key != "source" or is_file_name(data[key])):
                data[key] = _content(data[key], stamp(Path(data[key])))
        train = {key: value for key, value in self.spec.tables["train"].items() if key != "diagnostics"}
        if train["start"] is not None:
            train["start"] = _content(train["start"])
        tables = _without_later({**self.spec.tables, "data": data, "train": train})
        tables = _without_unset(tables)
        return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:16]


LATER: dict[str, dict[str, Any]] = {
    "data": {"validation": 0.0, "fold": 0, "score": "test", "client_test": 0.0, "drop": ()},
    "train": {"deliver": "synced", "metrics": ()},
}
"""Keys that later versions added, and what they do if they are not set: then they are no part of a name."""


def _without_later(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in table.items() if (key, value) not in LATER.get(name, {}).items()}
        for name, table in tables.items()
    }


def _without_unset(table: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _without_unset(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


@dataclass(frozen=True)
class SweepSpec:
    """A base spec (as given, not completed), and what each cell sets beyond it."""

    base: dict[str, Any]
    settings: tuple[dict[str, Any], ...]

    def cells(self) -> list[Cell]:
        """The cells, each once; raises `InputError` where one of them makes no sense."""
        return unique(make_cell(self.base, settings) for settings in self.settings)

    def share(self, text: str) -> "SweepSpec":
        """The part `k/n` of the cells: every n-th, from the k-th on. Together the parts are all."""
        part, parts = read_share(text)
        keep = self.cells()[part - 1 :: parts]
        if not keep:
            raise InputError("--share", text, f"there are only {len(self.cells())} runs to share out")
        return SweepSpec(self.base, tuple(cell.settings for cell in keep))


def read_share(text: str) -> tuple[int, int]:
    """The k and the n of `k/n`."""
    part, slash, parts = text.partition("/")
    sound = slash and part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)
    if not sound:
        raise InputError("--share", text, "must be k/n with 1 <= k <= n, such as 1/3")
    return int(part), int(parts)


def make_cell(base: dict[str, Any], settings: dict[str, Any]) -> Cell:
    given = base
    for path, value in settings.items():
        given = set_key(given, path.split("."), value)
    with in_cell(settings):
        spec = complete(given)
        watched = spec.tables["train"]["diagnostics"]
        check(not watched, "train.diagnostics", watched, "is for single runs; a sweep looks at none")
        return Cell(settings, spec)


@contextmanager
def in_cell(settings: dict[str, Any]) -> Iterator[None]:
    """Errors raised inside also say in which cell of the grid."""
    try:
        yield
    except InputError as error:
        where = ", ".join(f"{name} = {value}" for name, value in settings.items() if name != SEED)
        if not where or len(settings) > MOST_NAMED:
            raise
        raise InputError(error.key, error.value, f"{error.allowed} (in the cell {where})") from None


@lru_cache(maxsize=64)
def _content(path: str, stamped: Stamp) -> str:
    """A file, or the files of a folder, by what is in them, so that a changed file makes other cells."""
    try:
        if not Path(path).is_dir():
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
        digest = hashlib.sha256()
        for file, *_ in stamped:
            digest.update(f"{os.path.relpath(file, path)}\n".encode())
            digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
        return digest.hexdigest()
    except OSError:
        return path


def unique(cells: Iterable[Cell]) -> list[Cell]:
    return list({cell.key: cell for cell in cells}.values())


def load_sweep(path: Path, overrides: Iterable[str] = ()) -> SweepSpec:
    """Read a spec with a `[sweep]` table: `seeds`, `fixed_partition`, `grid`."""
    overrides = list(overrides)
    given = apply_overrides(read_toml(path), overrides)
    table = read_table(SWEEP, given.get(SWEEP, {}), SWEEP_KEYS)
    base = {name: value for name, value in given.items() if name not in (SWEEP, "made", "versions")}
    grid = flat(table["grid"])
    for override in overrides:
        name, _, value = override.partition("=")
        if name.strip() in grid:
            raise InputError(name.strip(), value, f"is swept; write sweep.grid.{name.strip()}=[...] instead")
    for name, values in grid.items():
        whole = f"{SWEEP}.grid.{name}"
        check(isinstance(values, list) and bool(values), whole, values, "must be a list of values to try")
        check(name != SEED, whole, values, "give sweep.seeds instead")
        once = len({json.dumps(value) for value in values}) == len(values)
        check(once, whole, values, "must hold each value once")
    first = complete(base).seed
    seeds = _seeds(table["seeds"], first)
    runs = len(seeds) * math.prod(map(len, grid.values()))
    check(runs <= MOST_RUNS, SWEEP, f"{runs} runs", f"must be {MOST_RUNS} runs at the most")
    fixed = {DATA_SEED: first, EXCLUSION_SEED: first} if table["fixed_partition"] else {}
    fixed = {name: value for name, value in fixed.items() if not _given(base, name) and name not in grid}
    return SweepSpec(
        base,
        tuple(
            {**dict(zip(grid, point, strict=True)), **fixed, SEED: seed}
            for point in itertools.product(*grid.values())
            for seed in seeds
        ),
    )


SWEEP_KEYS = {
    "seeds": Key(int | tuple[int, ...], 1, "how many, counted from `train.seed`; or a list of seeds"),
    "fixed_partition": Key(bool, False, "one partition and one set of excluded clients for all seeds"),
    "grid": Key(dict, {}, "the keys to vary, each with a list of values"),
}


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, its keys dotted paths."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


def _seeds(seeds: int | tuple[int, ...], first: int) -> list[int]:
    if isinstance(seeds, int):
        check_count("sweep.seeds", seeds, most=MOST_RUNS)
        return list(range(first, first + seeds))
    for seed in seeds:
        check_seed("sweep.seeds", seed)
    if len(seeds) != len(set(seeds)) or not seeds:
        raise InputError("sweep.seeds", seeds, "must be seeds, each once")
    return list(seeds)


def _given(base: dict[str, Any], path: str) -> bool:
    table, name = path.split(".")
    return isinstance(base.get(table), dict) and name in base[table]
