"""The directory of a league, and how far it is.

spec.toml        which settings, methods and seeds, and the specs of the settings
tuning/, final/  a sweep each: the runs that tune, and those that count
tuning.json      what each run of tuning/ is: setting, method, point of the grid
chosen.json      what tuning chose for each method in each setting, and what a round of it costs
final.json       what each run of final/ is: setting, method, variant
SHA256SUMS       the checksums of the files beside it
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from safari.algorithms import About
from safari.errors import InputError, check
from safari.experiment.checksums import SPEC, is_there, read_json, read_spec
from safari.experiment.directory import Directory, refuse_existing
from safari.experiment.sweep import SweepSpec, about_parts, merge, read_sweep
from safari.experiment.sweep.store import CELLS
from safari.experiment.versions import provenance, versions
from safari.league.costs import Costs
from safari.league.entries import algorithm_of
from safari.league.plan import Chosen, Plan, Planned, final_plan, read_planned, tuning_plan
from safari.league.settings import LEAGUE, Asked, Setting
from safari.league.tuning import choose
from safari.registry import ALGORITHMS

TUNING, FINAL, CHOSEN = "tuning", "final", "chosen"


@dataclass(frozen=True)
class League:
    """What a league is for, and what it has so far.

    Attributes:
        settings: the federations.
        methods: the labels of the entries, in the order asked for.
        chosen: what tuning chose, by setting and method; none before it is through.
        about: what each method states about itself; None where it states nothing.
        planned: the runs that count.
        results: those of them that are finished.
        made: by which command, when, where.
    """

    path: Path
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    seeds: int
    chosen: dict[tuple[str, str], Chosen]
    about: dict[str, About | None]
    planned: tuple[Planned, ...]
    results: pl.DataFrame
    made: dict[str, str]


def begin(path: Path, asked: Asked) -> None:
    """Make the directory of a league."""
    refuse_existing(path)
    plan = tuning_plan(asked)
    whole = {**_about(asked), "made": provenance(), "versions": versions()}
    Directory.create(path, tomli_w.dumps(whole), {_json(TUNING): plan.to_json()}).close()


def drop_if_empty(path: Path) -> None:
    """Remove the directory of a league of which no run has begun."""
    if is_league(path) and not any((path / name).exists() for name in (TUNING, FINAL)):
        shutil.rmtree(path)


def tunes(path: Path) -> bool:
    """Whether a league tunes: not where all its numbers are to be a paper's."""
    return bool(read_json(path / _json(TUNING)))


def to_tune(path: Path) -> SweepSpec | None:
    """The sweep that tunes; None if it has begun, or nothing is tuned."""
    if is_there(path / TUNING / CELLS) or not tunes(path):
        return None
    return tuning_plan(_asked(path)).sweep


def to_finish(path: Path) -> SweepSpec | None:
    """The sweep of the runs that count, with what tuning chose; None if it has begun.

    Raises:
        InputError: if tuning is not through.
    """
    if is_there(path / FINAL / CELLS):
        return None
    asked = _asked(path)
    planned = read_planned(read_json(path / _json(TUNING)))
    cells, results = read_sweep(path / TUNING) if planned else ([], pl.DataFrame())
    missing = len(cells) - len(results)
    check(missing == 0, "league", str(path), f"{missing} runs of the tuning are missing; --resume it")
    chosen = choose(asked, planned, results)
    plan = final_plan(asked, chosen)
    _write(path, chosen, plan)
    return plan.sweep


def _write(path: Path, chosen: dict[tuple[str, str], Chosen], plan: Plan) -> None:
    found = [
        {"setting": setting, "method": method, **asdict(one)} for (setting, method), one in chosen.items()
    ]
    with Directory.open(path) as directory:
        directory.write(_json(CHOSEN), json.dumps(found, indent=0).encode())
        directory.write(_json(FINAL), plan.to_json())


def about_league(path: Path) -> dict[str, Any]:
    """What spec.toml says of a league, beside how it was made."""
    tables = read_spec(path)
    return {name: table for name, table in tables.items() if name not in ("made", "versions")}


def is_league(path: Path) -> bool:
    return (path / SPEC).is_file() and LEAGUE in read_spec(path)


def read_league(path: Path) -> League:
    """What a league has so far.

    Raises:
        InputError: if the directory is none that `safari league` made.
    """
    check_league(path)
    asked = _asked(path)
    tuned = is_there(path / _json(FINAL)) and is_there(path / FINAL / CELLS)
    return League(
        path,
        asked.settings,
        asked.methods,
        asked.seeds,
        _read_chosen(path) if tuned else {},
        {name: _about_method(name) for name in asked.methods},
        read_planned(read_json(path / _json(FINAL))) if tuned else (),
        read_sweep(path / FINAL)[1] if tuned else pl.DataFrame(schema={"cell": pl.String}),
        {name: str(value) for name, value in read_spec(path).get("made", {}).items()},
    )


def check_league(path: Path) -> None:
    if not is_league(path):
        raise InputError("--resume", str(path), "was not made by `safari league`")


def merge_leagues(parts: Sequence[Path], out: Path) -> tuple[int, int]:
    """A new directory with the methods of all parts; how many runs there are, and how many are finished.

    Raises:
        InputError: if the parts differ in more than their methods, or the tuning of one is not through.
    """
    tables = [about_league(part)[LEAGUE] for part in parts]
    alike = [{**table, "methods": None, "grid": None} for table in tables]
    for part, table in zip(parts, alike, strict=True):
        check(table == alike[0], "merge", str(part), f"has other settings or seeds than {parts[0]}")
        check((part / FINAL).is_dir(), "merge", str(part), "has not finished its tuning; --resume it")
    refuse_existing(out)
    methods = list(dict.fromkeys(name for table in tables for name in table["methods"]))
    grids = {name: grid for table in tables for name, grid in table.get("grid", {}).items()}
    whole = {**about_parts(parts), LEAGUE: {**tables[0], "methods": methods, "grid": grids}}
    files = {_json(name): _joined(parts, name) for name in (TUNING, CHOSEN, FINAL)}
    Directory.create(out, tomli_w.dumps(whole), files).close()
    try:
        counts = [merge([part / name for part in parts], out / name) for name in (TUNING, FINAL)]
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise
    return sum(planned for planned, _ in counts), sum(finished for _, finished in counts)


def _joined(parts: Sequence[Path], name: str) -> bytes:
    rows = [row for part in parts for row in read_json(part / _json(name))]
    return json.dumps(list({json.dumps(row): row for row in rows}.values()), indent=0).encode()


def _about(asked: Asked) -> dict[str, Any]:
    settings = [_plain(asdict(one)) for one in asked.settings]
    grid = {name: dict(values) for name, values in asked.grids.items()}
    return {
        LEAGUE: {"methods": list(asked.methods), "seeds": asked.seeds, "grid": grid, "settings": settings}
    }


def _asked(path: Path) -> Asked:
    table = read_spec(path)[LEAGUE]
    settings = tuple(_setting(one) for one in table["settings"])
    return Asked(settings, tuple(table["methods"]), table["seeds"], table["grid"])


def _plain(setting: dict[str, Any]) -> dict[str, Any]:
    """As TOML can hold it: what is not set is left out. Its spec comes last, as a table does."""
    spec = setting.pop("base")
    return {name: value for name, value in setting.items() if value is not None} | {"spec": spec}


def _setting(found: dict[str, Any]) -> Setting:
    plain = {name: value for name, value in found.items() if name != "spec"}
    return Setting(**{**plain, "seeded": tuple(found["seeded"]), "base": found["spec"]})


def _read_chosen(path: Path) -> dict[tuple[str, str], Chosen]:
    return {
        (one.pop("setting"), one.pop("method")): Chosen(**{**one, "costs": Costs(**one["costs"])})
        for one in read_json(path / _json(CHOSEN))
    }


def _about_method(label: str) -> About | None:
    """What the method says about itself; a class of the user's own may be gone by now."""
    name, clients = algorithm_of(label)
    try:
        about = vars(ALGORITHMS.find(name, "league.methods")).get("about")
        of_clients = (
            None if clients is None else vars(ALGORITHMS.find(clients, "league.methods")).get("about")
        )
    except InputError:
        return None
    if about is None or of_clients is None:
        return about
    # A combinator states what it costs with its default clients; a form has others.
    costs = ("down", "up", "server_memory", "for_each_client", "client_memory")
    return replace(about, **{cost: getattr(of_clients, cost) for cost in costs})


def _json(name: str) -> str:
    return f"{name}.json"
