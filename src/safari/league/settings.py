"""The federations on which the methods meet; and a federation of the user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from safari.data import Federation
from safari.errors import InputError, check, check_count, unknown_name
from safari.experiment.schema import Key, read_table
from safari.experiment.spec import apply_overrides, complete, read_toml
from safari.experiment.sweep import flat, read_share
from safari.league.entries import CLIENTS, KNOWN, LOCAL, Entry, entries_named, labels_of
from safari.league.fedawe import PRINTED
from safari.league.hospitals import ABSENT
from safari.report.metric_names import RECALL, SHARES, Metric, metric_named

LEAGUE, METRIC = "league", "league.metric"
SEEDS, MOST_SEEDS = 5, 1000
FOLDS = 5
"""Tuning holds out one of so many parts of the server's samples, under each seed another."""


@dataclass(frozen=True)
class Setting:
    """A federation, who takes part in it, and how long is trained.

    Attributes:
        key: its name, and where its page is.
        title: one line that describes it.
        base: the spec that all methods start from, as given, not completed.
        metric: what is tuned for.
        seeded: keys beside `train.seed` that take the seed.
        by_classes: whether clients come by the classes that they hold, as `ByClasses` has it.
        constants: where a paper printed its numbers, the methods and their keys there; nothing is tuned then.
    """

    key: str
    title: str
    base: Mapping[str, Any] = field(repr=False)
    metric: str = "balanced_accuracy"
    seeded: tuple[str, ...] = ()
    by_classes: bool = False
    constants: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def seed(self) -> int:
        """The first seed."""
        return complete(dict(self.base)).seed

    @property
    def scored(self) -> Metric:
        """What is tuned for, as it is read and shown."""
        return metric_named(self.metric, METRIC)

    @property
    def rounds(self) -> int:
        return complete(dict(self.base)).tables["train"]["rounds"]


def _algorithm(local: float, server: float, batch: int, **clients: Any) -> dict[str, Any]:
    return {
        "clients": {"name": "fedavg", "local_rate": local, "batch_size": batch, **clients},
        "server": {"rate": server, "batch_size": batch},
    }


def _digits() -> Setting:
    base = {
        "data": {
            "source": "digits",
            "partition": {"clients": 10, "classes_per_client": 1, "samples_per_client": 120},
            "server": {"samples": 50},
        },
        "participation": {"excluded": 4, "per_round": 5},
        "model": {"name": "logistic"},
        "algorithm": _algorithm(0.1, 0.3, 10),
        "train": {"rounds": 100, "evaluate_every": 5},
    }
    return Setting("digits", "ten clients, one digit each, four never come; 50 server samples", base)


MNIST_CLIENT, MNIST_ROUNDS = 640, 75
"""Where the paper has 5400 samples a client and 150 rounds: a table is thousands of runs."""

CIFAR10_CLIENT, CIFAR10_ROUNDS = 1500, 150
"""Where the paper has 5000 of each: 41 methods then take about 7 million steps a setting; with 1500 rounds of
4500 samples they take 200 million."""


def _mnist(p: int, samples: int) -> Setting:
    base = {
        "data": {
            "source": "mnist",
            "partition": {"clients": 10, "classes_per_client": p, "samples_per_client": MNIST_CLIENT},
            "server": {"samples": samples},
        },
        "participation": {"excluded": 4, "per_round": 5},
        "model": {"name": "logistic"},
        "algorithm": _algorithm(0.1, 0.1, 64),
        "train": {"rounds": MNIST_ROUNDS, "evaluate_every": 15},
    }
    title = (
        f"MNIST, ten clients of {p} class{'es' if p > 1 else ''} each, four never come; "
        f"{samples} server samples; {MNIST_CLIENT} samples a client and {MNIST_ROUNDS} rounds, where the "
        "paper has 5400 and 150"
    )
    return Setting(f"mnist-p{p}-n{samples}", title, base)


def _cifar10(p: int, samples: int) -> Setting:
    base = {
        "data": {
            "source": "cifar10",
            "partition": {"clients": 10, "classes_per_client": p, "samples_per_client": CIFAR10_CLIENT},
            "server": {"samples": samples},
        },
        "participation": {"excluded": 4, "per_round": 5},
        "model": {"name": "cnn"},
        "algorithm": {
            "clients": {"name": "fedavg", "local_rate": 0.1, "batch_size": 500, "clip": 10.0},
            "server": {"rate": 0.1, "batch_size": 500, "clip": 10.0},
        },
        "train": {"rounds": CIFAR10_ROUNDS, "evaluate_every": 15, "precision": "bfloat16"},
    }
    title = (
        f"CIFAR-10, ten clients of {p} class{'es' if p > 1 else ''} each, four never come; "
        f"{samples} server samples; {CIFAR10_CLIENT} samples a client and {CIFAR10_ROUNDS} rounds, where the "
        "paper has 5000 and 5000"
    )
    return Setting(f"cifar10-p{p}-n{samples}", title, base)


def _fedawe(name: str, swing: float) -> Setting:
    availability = {"name": "safari.league.fedawe:ByClasses", "swing": swing}
    base = {
        "data": {
            "source": "cifar10",
            "partition": {"name": "dirichlet", "clients": 100, "alpha": 0.1},
            "server": {"samples": 0},
        },
        "participation": {"availability": availability},
        "model": {"name": "safari.league.fedawe:Network"},
        "algorithm": {
            "clients": {"name": "fedavg", "local_rate": 0.05, "local_steps": 10, "batch_size": 128}
        },
        "train": {"rounds": 2000, "evaluate_every": 5, "schedule": "safari.league.fedawe:ByRoot"},
    }
    title = f"table 2 of Xiang et al. (NeurIPS 2024), {name}: CIFAR-10, 100 clients by Dirichlet(0.1)"
    constants: dict[str, dict[str, Any]] = {method: {} for method in PRINTED}
    constants["fedawe"] = constants["known-p"] = {LOCAL: 0.1}
    constants["f3ast"] = {f"{CLIENTS}b": 0.001}
    return Setting(f"fedawe-{name}", title, base, by_classes=True, constants=constants)


def _irregular(name: str, title: str, availability: dict[str, Any]) -> Setting:
    base = {
        "data": {
            "source": "digits",
            "partition": {"name": "dirichlet", "clients": 30, "alpha": 0.1, "samples_per_client": 40},
            "server": {"samples": 50},
        },
        "participation": {"per_round": 5, "availability": availability},
        "model": {"name": "logistic"},
        "algorithm": _algorithm(0.1, 0.3, 10),
        "train": {"rounds": 100, "evaluate_every": 5},
    }
    return Setting(f"irregular-{name}", f"digits, 30 clients by Dirichlet(0.1); {title}", base)


def _hospitals() -> Setting:
    base = {
        "data": {"source": "safari.league.hospitals:Hospitals", "partition": "column"},
        "participation": {"excluded": list(ABSENT), "per_round": 5},
        "model": {"name": "mlp", "hidden": [16]},
        "algorithm": _algorithm(0.1, 0.1, 16, weights="size"),
        "train": {"rounds": 100, "evaluate_every": 10},
    }
    title = "twelve hospitals, three never come and hold nine tenths of a rare class; 60 server samples"
    return Setting("hospitals", title, base, seeded=("data.draw",))


def _all_settings() -> list[Setting]:
    markov = {"name": "markov", "join": 0.05, "leave": 0.2}
    long_tail = {"name": "long-tail"}
    return [
        _digits(),
        _hospitals(),
        _irregular("markov", "they come and go as a Markov chain", markov),
        _irregular("long-tail", "few come nearly always, most of them rarely", long_tail),
        *(_mnist(p, samples) for p in (1, 2) for samples in (50, 100, 500, 1000)),
        *(_cifar10(p, samples) for p in (1, 2) for samples in (500, 5000)),
        _fedawe("stationary", 0.0),
        _fedawe("sine", 0.3),
    ]


SETTINGS = {one.key: one for one in _all_settings()}
GROUPS = {
    group: tuple(key for key in SETTINGS if key.startswith(f"{group}-"))
    for group in ("mnist", "cifar10", "irregular", "fedawe")
}


@dataclass(frozen=True)
class Asked:
    """What a league is asked for.

    Attributes:
        settings: the federations.
        methods: the labels of those who take part.
        seeds: how many, counted from each setting's first.
        grids: by method, the grid that is tuned over where it is not to be the one that we have.
    """

    settings: tuple[Setting, ...]
    methods: tuple[str, ...] = KNOWN
    seeds: int = SEEDS
    grids: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)

    @property
    def entries(self) -> list[Entry]:
        """Who takes part."""
        return entries_named(self.methods, self.grids)

    def share(self, text: str) -> "Asked":
        """The part `k/n` of the methods: every n-th, from the k-th on, each with its tuning."""
        part, parts = read_share(text)
        keep = self.methods[part - 1 :: parts]
        check(bool(keep), "--share", text, f"there are only {len(self.methods)} methods to share out")
        grids = {name: grid for name, grid in self.grids.items() if name in keep}
        return replace(self, methods=keep, grids=grids)


def asked_of(name: str, overrides: Sequence[str] = ()) -> Asked:
    """The settings of this name, one of ours, a group of ours, or a spec with a table `[league]`.

    Args:
        name: `digits`, `mnist`, `mnist-p1-n100`, ..., or the path of a TOML file.
        overrides: texts `key=value`, which win over each setting's spec.

    Raises:
        InputError: if there is no such setting, or its spec cannot be used.
    """
    if name in GROUPS or name in SETTINGS:
        keys = GROUPS.get(name, (name,))
        settings = tuple(_overridden(SETTINGS[key], overrides) for key in keys)
        return Asked(settings, tuple(settings[0].constants or KNOWN))
    if not name.endswith(".toml"):
        hint = unknown_name(name, [*GROUPS, *SETTINGS], "setting")
        raise InputError("league", name, f"{hint}, or a TOML file")
    return _own(Path(name), overrides)


def _overridden(setting: Setting, overrides: Sequence[str]) -> Setting:
    base = apply_overrides(dict(setting.base), overrides)
    complete(base)
    return replace(setting, base=base)


LEAGUE_KEYS = {
    "methods": Key(tuple[str, ...], KNOWN, "which methods; default: all of safari's, and the references"),
    "seeds": Key(int, SEEDS, "how many, counted from `train.seed`"),
    "metric": Key(str, "balanced_accuracy", "what is tuned for"),
    "grid": Key(dict, {}, "by method: keys of [algorithm] to tune, each with a list of values"),
}
"""The table `[league]` of a spec of the user's own."""


def _own(path: Path, overrides: Sequence[str]) -> Asked:
    given = apply_overrides(read_toml(path), overrides)
    table = read_table(LEAGUE, given.get(LEAGUE, {}), LEAGUE_KEYS)
    check_count(f"{LEAGUE}.seeds", table["seeds"], most=MOST_SEEDS)
    known = table["metric"] in SHARES or table["metric"].startswith(RECALL)
    check(known, METRIC, table["metric"], f"must be among {', '.join(SHARES)}, {RECALL}CLASS")
    base = {name: value for name, value in given.items() if name not in (LEAGUE, "made", "versions")}
    spec = complete(base)
    if table["metric"].startswith(RECALL):
        _check_class(table["metric"], spec.federation())
    setting = Setting(path.stem, str(path), base, table["metric"])
    grids = {name: flat(grid) for name, grid in table["grid"].items()}
    return Asked((setting,), labels_of(table["methods"]), table["seeds"], grids)


def _check_class(metric: str, federation: Federation) -> None:
    """Refuse to tune for the recall of a class that is unknown, or that the server can hardly hold out."""
    name, labels = metric.removeprefix(RECALL), federation.dataset.labels
    check(name in labels, METRIC, metric, unknown_name(name, labels, "class"))
    held = np.asarray(federation.dataset.y)[federation.held_by(None)]
    count = int((held == labels.index(name)).sum())
    hint = f"the server holds {count} samples of {name}; {FOLDS + 1} are enough for every part held out"
    check(count > FOLDS, METRIC, metric, hint)
