"""Who takes part in the league: each entry a method, and the grid of settings that it is tuned over.

Every grid has `POINTS` points. Rates are multiples of those of the setting, so that one grid serves all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from safari.algorithms import ClientAlgorithm
from safari.algorithms.combinator import ClientsAndServer
from safari.errors import InputError, check, unknown_name
from safari.experiment.schema import keys_of
from safari.registry import ALGORITHMS, is_own

POINTS = 12
SAFARI, SERVER_ONLY, EVERYONE, CENTRAL = "safari", "server-only", "everyone takes part", "central"
REFERENCES = (EVERYONE, CENTRAL)
LOCAL, GLOBAL, SERVER, STEPS, ROUNDS = (
    "algorithm.clients.local_rate",
    "algorithm.clients.global_rate",
    "algorithm.server.rate",
    "algorithm.server.steps",
    "algorithm.rounds",
)


@dataclass(frozen=True)
class Times:
    """So many times what the spec has under `path`; rounded where `whole`."""

    factor: float
    path: str
    whole: bool = False

    def of(self, value: float) -> float:
        found = self.factor * value
        return max(1, round(found)) if self.whole else float(f"{found:.6g}")


@dataclass(frozen=True)
class Entry:
    """A row of the table: what it is called, the keys that make it, the grid that it is tuned over.

    Attributes:
        label: the name of a method, or of a form of one.
        fixed: the keys that it sets, by path.
        grid: the keys that are tuned, each with the values to try; without any it is not tuned.
    """

    label: str
    fixed: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]

    def points(self) -> list[dict[str, Any]]:
        """The points of its grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


Grid: TypeAlias = dict[str, Sequence[Any]]
"""The keys that are tuned, by path, each with the values to try."""


def times(path: str, *factors: float, whole: bool = False) -> tuple[Times, ...]:
    return tuple(Times(factor, path, whole) for factor in factors)


LOCAL_4: Grid = {LOCAL: times(LOCAL, 0.1, 0.3, 1.0, 3.0)}
LOCAL_3: Grid = {LOCAL: times(LOCAL, 0.3, 1.0, 3.0)}
LOCAL_2: Grid = {LOCAL: times(LOCAL, 0.3, 1.0)}
GLOBAL_3: Grid = {GLOBAL: (0.5, 1.0, 2.0)}
GLOBAL_2: Grid = {GLOBAL: (1.0, 2.0)}
SERVER_3: Grid = {SERVER: times(SERVER, 0.3, 1.0, 3.0)}
SERVER_2: Grid = {SERVER: times(SERVER, 0.3, 1.0)}
CLIENTS = "algorithm.clients."
OVER: Grid = {f"{CLIENTS}over": ("all", "seen")}
STAGE: Grid = {ROUNDS: times("train.rounds", 0.1, 0.3, 0.6, whole=True)}
ADAPTIVE: Grid = {GLOBAL: (0.003, 0.01, 0.03)}
Q: Grid = {"algorithm.q": (0.5, 0.7, 0.9)}

GRIDS: dict[str, Grid] = {
    "safari": LOCAL_2 | SERVER_2 | Q,
    "server-only": {SERVER: times(SERVER, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), STEPS: ("match", "epoch")},
    "fedavg": LOCAL_4 | GLOBAL_3,
    "fedprox": LOCAL_4 | {f"{CLIENTS}proximal": (0.01, 0.1, 1.0)},
    "scaffold": LOCAL_4 | GLOBAL_3,
    "fednova": LOCAL_4 | GLOBAL_3,
    "fedavgm": LOCAL_4 | {f"{CLIENTS}momentum": (0.5, 0.9, 0.97)},
    "fedadam": LOCAL_2 | ADAPTIVE | {f"{CLIENTS}eps": (1e-3, 1e-2)},
    "fedadagrad": LOCAL_2 | ADAPTIVE | {f"{CLIENTS}tau": (1e-3, 1e-2)},
    "fedyogi": LOCAL_2 | ADAPTIVE | {f"{CLIENTS}tau": (1e-3, 1e-2)},
    "feddyn": LOCAL_3 | OVER | {f"{CLIENTS}alpha": (0.01, 0.1)},
    "fedexp": LOCAL_4 | {f"{CLIENTS}eps": (1e-4, 1e-3, 1e-2)},
    "mifa": LOCAL_3 | OVER | GLOBAL_2,
    "fedvarp": LOCAL_3 | OVER | GLOBAL_2,
    "fedstale": LOCAL_3 | OVER | {f"{CLIENTS}beta": (0.2, 0.8)},
    "fedau": LOCAL_3 | OVER | GLOBAL_2,
    "known-p": LOCAL_3 | OVER | GLOBAL_2,
    "f3ast": LOCAL_3 | OVER | {f"{CLIENTS}b": (0.001, 0.01)},
    "fedawe": LOCAL_4 | GLOBAL_3,
    "amplify": LOCAL_2 | {f"{CLIENTS}amplification": (1.5, 3.0, 10.0), f"{CLIENTS}every": (5, 50)},
    "data-sharing": LOCAL_4 | {f"{CLIENTS}share": (0.25, 0.5, 1.0)},
    "fltrust": LOCAL_4 | GLOBAL_3,
    "fedlaw": LOCAL_4 | {f"{CLIENTS}fit_rate": (0.005, 0.01, 0.05)},
    "warm-start": LOCAL_2 | SERVER_2 | STAGE,
    "fine-tune": LOCAL_2 | SERVER_2 | STAGE,
    "hybrid-fl": LOCAL_4 | SERVER_3,
    "clg-sgd": LOCAL_4 | SERVER_3,
    "fedclg-c": LOCAL_4 | SERVER_3,
    "fedclg-s": LOCAL_4 | SERVER_3,
    "feddu": LOCAL_2 | SERVER_3 | {"algorithm.decay": (0.99, 1.0)},
    "mixed-parallel": LOCAL_4 | SERVER_3,
    "mixed-one-way": LOCAL_4 | {f"{CLIENTS}weight": (0.3, 1.0, 3.0)},
    "mixed-two-way": LOCAL_2 | SERVER_2 | {f"{CLIENTS}weight": (0.3, 1.0, 3.0)},
}
"""What each method is tuned over."""

EVERYBODY_COMES = {
    "algorithm.name": "fedavg",
    "participation.excluded": 0,
    "participation.availability": "always",
    "participation.dropout": 0.0,
}
CENTRAL_CLASS = "safari.league.central:Central"
OTHERS: dict[str, Entry] = {
    EVERYONE: Entry(EVERYONE, EVERYBODY_COMES, GRIDS["fedavg"]),
    CENTRAL: Entry(
        CENTRAL,
        {"algorithm.name": CENTRAL_CLASS},
        {SERVER: times(SERVER, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)},
    ),
}
AVERAGE = {"train.deliver": "average"}
TURNS_CLASS = "safari.league.turns:Turns"


def _form(algorithm: str, clients: str = "fedavg", **more: Any) -> dict[str, Any]:
    return {"algorithm.name": algorithm, f"{CLIENTS}name": clients, **more}


FORMS = {
    "safari + average": _form("safari", **AVERAGE),
    "safari + scaffold + average": _form("safari", "scaffold", **AVERAGE),
    "safari + momentum + average": _form("safari", "fedavgm", **AVERAGE),
    "safari + adam + average": _form("safari", "fedadam", **AVERAGE),
    "safari + more steps + average": {**_form("safari", **AVERAGE), STEPS: 30},
    "turns + scaffold + average": _form(TURNS_CLASS, "scaffold", **AVERAGE),
    "clg-sgd + scaffold + average": _form("clg-sgd", "scaffold", **AVERAGE),
}
"""Forms of SAFARI beside the paper's: other clients, averaged server models, another order of rounds."""

OTHERS |= {
    label: Entry(label, fixed, GRIDS["clg-sgd" if label.startswith("clg-sgd") else SAFARI])
    for label, fixed in FORMS.items()
}
KNOWN = (*GRIDS, *REFERENCES)
"""Who takes part if nothing is said."""

GROUPS = {"all": KNOWN, "forms": tuple(FORMS)}
"""Names for several."""


def entries_named(
    names: Sequence[str], grids: Mapping[str, Mapping[str, Sequence[Any]]] | None = None
) -> list[Entry]:
    """The entries of these names, ours or `file.py:Class`.

    Args:
        names: methods, forms of SAFARI, and the references `everyone takes part` and `central`.
        grids: the grid of a method, where it is not to be the one that we have for it.

    Raises:
        InputError: if a name is unknown, or a grid has another size than all others.
    """
    grids = grids or {}
    for name in grids:
        check(name in names, "league.grid", name, "is the grid of a method that takes no part")
    once = len(names) == len(set(names)) and len(names) > 0
    check(once, "league.methods", list(names), "needs at least one, and each once")
    return [_entry(name, grids.get(name)) for name in names]


def _entry(name: str, grid: Mapping[str, Sequence[Any]] | None) -> Entry:
    if not (name in GRIDS or name in OTHERS or is_own(name)):
        hint = unknown_name(name, (*GROUPS, *GRIDS, *OTHERS), "method")
        raise InputError("league.methods", name, f"{hint}, or file.py:Class")
    fixed = OTHERS[name].fixed if name in OTHERS else {"algorithm.name": name}
    if grid is not None:
        return Entry(name, fixed, _checked(name, grid))
    return OTHERS[name] if name in OTHERS else Entry(name, fixed, GRIDS.get(name) or _usual_grid(name))


def labels_of(names: Sequence[str]) -> tuple[str, ...]:
    """The labels behind names, each of which may stand for several."""
    return tuple(label for name in names for label in GROUPS.get(name, (name,)))


def algorithm_of(label: str) -> tuple[str, str | None]:
    """The name of the algorithm behind a label, and that of its clients where the label names them."""
    fixed = OTHERS[label].fixed if label in OTHERS else {"algorithm.name": label}
    return fixed["algorithm.name"], fixed.get(f"{CLIENTS}name")


def _checked(name: str, grid: Mapping[str, Sequence[Any]]) -> Grid:
    key = f"league.grid.{name}"
    for path, values in grid.items():
        check(isinstance(values, list) and bool(values), f"{key}.{path}", values, "must be a list of values")
    size = math.prod(len(values) for values in grid.values())
    check(
        size == POINTS, key, f"{size} points", f"must have {POINTS} points, as the grid of every method has"
    )
    return {f"algorithm.{path}": tuple(values) for path, values in grid.items()}


def _usual_grid(name: str) -> Grid:
    """For a method of the user's own: the rates, as for FedAvg and CLG-SGD."""
    cls = ALGORITHMS.find(name, "league.methods")
    if issubclass(cls, ClientAlgorithm):
        return GRIDS["fedavg"]
    if issubclass(cls, ClientsAndServer) and {"clients", "server"} <= set(keys_of(cls)):
        return GRIDS["clg-sgd"]
    hint = f'name a grid of {POINTS} points for it: [league.grid."{name}"]'
    raise InputError("league.methods", name, f"has no rates that are known here; {hint}")
