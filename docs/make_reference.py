"""Writes docs/spec.md from the nouns' own signatures and docstrings: python docs/make_reference.py"""

from collections.abc import Iterator
from pathlib import Path

from safari.algorithms import AdaptiveQ
from safari.data import ServerSet
from safari.engine import train
from safari.experiment.data_table import data_keys
from safari.experiment.schema import NAME, Key, describe, keys_of, shown_default
from safari.experiment.spec import NOT_TRAIN
from safari.experiment.sweep.cells import SWEEP_KEYS
from safari.participation import Participation
from safari.registry import (
    ALGORITHMS,
    AVAILABILITIES,
    MODELS,
    PARTITIONS,
    SCHEDULES,
    SOURCES,
    Registry,
)

HEAD = """# Spec reference

Written by `python docs/make_reference.py` from the signatures and docstrings of the code.

A key that holds another noun is a table of its own. Its key `name` says which one, and a name alone may
stand for the table: `partition = "iid"`. Wherever a name stands, `module:Class` or `file.py:Class` names
a class of your own, whose fields become keys ([Extending safari](extending.md)).

An algorithm that acts on one side alone (`fedavg`, `sgd`, your own client method) is described by the
table of that side: `[algorithm.clients]` or `[algorithm.server]`. So one file serves all algorithms:
`safari run FILE algorithm.name=scaffold` leaves out the keys that it has no use for.
"""
Section = tuple[str, str, dict[str, Key]]


def sections() -> Iterator[Section]:
    source = {
        "source": Key(
            str, "digits", "The name of a data set, the path of a file or folder, or `module:Class`."
        )
    }
    yield "data", "who holds what", {**source, **data_keys()}
    yield from each("data", SOURCES, "source")
    yield from each("data.partition", PARTITIONS)
    yield "data.server", "the server's own samples", keys_of(ServerSet)
    yield "participation", "who takes part", keys_of(Participation)
    yield from each("participation.availability", AVAILABILITIES)
    yield from each("model", MODELS)
    whole = [name for name in ALGORITHMS if ALGORITHMS[name].table is None]
    for name in whole:
        yield "algorithm", f'with `name = "{name}"`', keys_of(ALGORITHMS[name])
    yield "algorithm.q", 'instead of a number; `q = "adaptive"` for the defaults', keys_of(AdaptiveQ)
    for side in ("clients", "server"):
        names = [name for name in ALGORITHMS if ALGORITHMS[name].table == side]
        for name in names:
            yield f"algorithm.{side}", f'with `name = "{name}"`', keys_of(ALGORITHMS[name])
    yield "train", "how long, and how exactly", keys_of(train, NOT_TRAIN)
    yield from each("train.schedule", SCHEDULES)
    about = "for `safari sweep`: `grid` holds the keys of the other tables, each with a list"
    yield "sweep", about, SWEEP_KEYS


def each(table: str, registry: Registry, key: str = NAME) -> Iterator[Section]:
    for name in registry:
        yield table, f'with `{key} = "{name}"`', keys_of(registry[name])


def default(table: str, name: str, key: Key) -> str:
    if name == "seed" and table != "train":
        return "`train.seed`"
    shown = shown_default(key)
    return shown if shown in ("must be given", "not set", "its defaults") else f"`{shown}`"


def row(table: str, name: str, key: Key) -> str:
    meaning = key.meaning[:1].upper() + key.meaning[1:]
    cells = (f"`{name}`", describe(key), default(table, name, key), meaning.replace("|", "\\|"))
    return f"| {' | '.join(cells)} |"


def reference() -> str:
    parts = [HEAD]
    for table, about, keys in sections():
        parts.append(f"\n## [{table}], {about}\n")
        if not keys:
            parts.append("\nNo keys.\n")
            continue
        rows = [row(table, name, key) for name, key in keys.items()]
        head = "\n| key | may hold | default | what it means |\n|---|---|---|---|\n"
        parts.append(head + "\n".join(rows) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(reference())
