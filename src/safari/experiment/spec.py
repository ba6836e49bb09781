"""`Spec`: an experiment as text, complete and checked; and the nouns that it describes."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import tomli_w

from safari.algorithms import Algorithm, Schedule
from safari.data import Federation, File, Nodes, Partition, ServerSet, Source, at_server, federate
from safari.data.sources import source_class
from safari.engine import Run, check_train, prepare, train
from safari.errors import InputError, naming, unknown_name
from safari.experiment.data_table import AT_SERVER, FEDERATE, read_data, seeded
from safari.experiment.old_keys import refuse_misplaced_keys
from safari.experiment.paths import with_whole_paths
from safari.experiment.schema import (
    NAME,
    Key,
    build,
    keys_of,
    keys_of_class,
    making,
    read_noun,
    read_table,
)
from safari.experiment.trial import prepare_tried
from safari.experiment.versions import versions
from safari.models import Logistic, Model, build_module
from safari.participation import Participation
from safari.randomness import streams_of
from safari.registry import ALGORITHMS, MODELS, is_own, own_class, refuse_abstract

TABLES = ("data", "participation", "model", "algorithm", "train")
NOT_TRAIN = ("federation", "algorithm", "model", "participation", "on_progress", "progress")
"""Arguments of `train` that have a table of their own, or none."""

MADE_BY_MODULE = ("key", "shape", "classes")
"""What an equinox module is given beside its keys, where its signature asks for it."""


@dataclass(frozen=True)
class Spec:
    """A complete experiment: five tables, every default written out."""

    tables: dict[str, dict[str, Any]]

    @property
    def seed(self) -> int:
        return self.tables["train"]["seed"]

    def prepare(self, federation: Federation | None = None) -> Run:
        """Build all parts and bind them.

        Args:
            federation: the one that `[data]` describes, where it has been built already.

        Raises:
            InputError: if they do not fit, or a class of the user's own fails on them.
        """
        train_table = self.tables["train"]
        federation = self.federation() if federation is None else federation
        parts = (federation, self.algorithm(), self.model(federation), self.participation())
        settings = tuple(train_table[key] for key in ("rounds", "seed", "evaluate_every", "precision"))
        options = {
            key: train_table[key]
            for key in ("deliver", "patience", "schedule", "start", "metrics", "class_weights")
        }
        if options["schedule"] is not None:
            options["schedule"] = build("train.schedule", options["schedule"], Schedule)
        own = self.own_classes()
        if own:
            return prepare_tried(own, *parts, *settings, **options)
        return prepare(*parts, *settings, **options)

    def source(self) -> Source:
        """Where the samples come from."""
        table, name = self.tables["data"], self.tables["data"]["source"]
        cls = source_class(name)
        own = {key: table[key] for key in keys_of(cls) if key in table}
        with naming("data"), making("source", name):
            return cls(**own, path=name) if cls is File else cls(**own)

    @property
    def on_nodes(self) -> bool:
        """Whether every client's samples lie on its own node."""
        return source_class(self.tables["data"]["source"]) is Nodes

    def federation(self) -> Federation:
        table, made = self.tables["data"], self.source()
        given = table["server"]
        if not isinstance(made, Nodes):
            partition = build("data.partition", table["partition"], Partition)
            server = build("data.server", given, ServerSet) if isinstance(given, dict) else given
        try:
            if isinstance(made, Nodes):
                return federate(made)
            settings = {
                key: table[key] for key in (*FEDERATE, *(("test",) if isinstance(made, File) else ()))
            }
            return federate(made, partition, server, **settings)
        except InputError as error:
            raise self._in_data(error) from None

    def at_server(self) -> Federation:
        """What the server holds of a federation whose clients' samples lie on their nodes."""
        table, made = self.tables["data"], self.source()
        assert isinstance(made, Nodes)
        try:
            settings = {key: table[key] for key in AT_SERVER}
            return at_server(made, Path(table["server"]), table["test"], **settings)
        except InputError as error:
            raise self._in_data(error) from None

    def _in_data(self, error: InputError) -> InputError:
        """An error of `federate`, by the keys of the spec: those of the source stand in [data] itself."""
        table = self.tables["data"]
        source, partition = table["source"], table.get("partition", {}).get(NAME, "")
        key = error.key.removeprefix("source.")
        if key == "partition":
            named = f"data.partition.{NAME}" if is_own(partition) else "data.partition"
            return InputError(named, partition, error.allowed)
        if key == "source" and is_own(source):
            return InputError("data.source", source, error.allowed)
        if is_own(source) and key.partition(".")[0] not in table:
            return InputError("data.source", source, f"loads what cannot be used ({error})")
        return InputError(f"data.{key}", error.value, error.allowed)

    def participation(self) -> Participation:
        return build("participation", self.tables["participation"], Participation)

    def model(self, federation: Federation) -> Model:
        table, dataset = self.tables["model"], federation.dataset
        cls: Any = model_class(table[NAME])
        if issubclass(cls, Model):
            return build("model", table, Model)
        fields = {key: value for key, value in table.items() if key != NAME}
        key = streams_of(self.seed).initialisation
        with making(f"model.{NAME}", table[NAME]):
            return build_module(cls, fields, key, dataset.shape, dataset.classes)

    def algorithm(self) -> Algorithm:
        table = self.tables["algorithm"]
        side = _algorithm_class(table[NAME]).table
        if side is None:
            return build("algorithm", table, Algorithm)
        return build(f"algorithm.{side}", table[side], Algorithm)

    def own_classes(self) -> dict[str, str]:
        """The keys that name classes of the user's own, and the names."""
        return dict(_own_names(self.tables, ""))

    def to_toml(self) -> str:
        """The spec as a file, with the versions that it was written by."""
        return tomli_w.dumps({**self.plain(), "versions": versions()})

    def plain(self) -> dict[str, Any]:
        """The tables without what is not set, as TOML can hold them."""
        return _plain(self.tables)


def load_spec(path: str | Path, overrides: Iterable[str] = ()) -> Spec:
    """Read a TOML file.

    Args:
        path: the file.
        overrides: texts `key.path=value`, which win over the file.

    Raises:
        InputError: if anything in it cannot be used.
    """
    return complete(apply_overrides(read_toml(Path(path)), overrides))


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a spec; paths in it are relative to its folder."""
    return with_whole_paths(parse_toml(path), path.parent)


def parse_toml(path: Path) -> dict[str, Any]:
    """The tables of a file as they are written."""
    if not path.is_file():
        raise InputError("spec", str(path), "is a folder" if path.is_dir() else "no such file")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InputError("spec", str(path), f"is not a TOML file ({error})") from None


def apply_overrides(given: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    for override in overrides:
        path, equals, text = override.partition("=")
        names = path.strip().split(".")
        if not equals or not all(names):
            raise InputError("override", override, "must be key=value, such as algorithm.q=0.6")
        given = set_key(given, names, _parse(text.strip()))
    return given


def complete(given: dict[str, Any]) -> Spec:
    """Check what was given and write every default out."""
    given = {name: value for name, value in given.items() if name != "versions"}
    for name in given:
        if name == "sweep":
            raise InputError(name, given[name], "is for `safari sweep`; leave the table out for a single run")
        if name not in TABLES:
            raise InputError(name, given[name], unknown_name(name, TABLES))
    tables = {name: given.get(name, {}) for name in TABLES}
    train_table = read_table("train", tables["train"], keys_of(train, NOT_TRAIN))
    check_train(train_table["rounds"], train_table["seed"], train_table["evaluate_every"])
    seed = train_table["seed"]
    return Spec(
        {
            "data": read_data(tables["data"], seed),
            "participation": read_table(
                "participation", tables["participation"], seeded(keys_of(Participation), seed)
            ),
            "model": _read_model(tables["model"]),
            "algorithm": _read_algorithm(tables["algorithm"]),
            "train": train_table,
        }
    )


def model_class(name: str) -> type:
    """A model by its name, or the user's own: a `safari.Model` or an equinox module."""
    key = f"model.{NAME}"
    found = own_class(name, key) if is_own(name) else MODELS.find(name, key)
    if not (isinstance(found, type) and issubclass(found, eqx.Module)):
        raise InputError(key, name, "is not a subclass of safari.Model or equinox.Module")
    refuse_abstract(found, name, key)
    return found


def _read_model(given: Any) -> dict[str, Any]:
    given = {NAME: given} if isinstance(given, str) else given
    name = given.get(NAME) if isinstance(given, dict) else None
    if isinstance(name, str) and is_own(name):
        cls = model_class(name)
        if not issubclass(cls, Model):
            keys = keys_of_class(cls, f"model.{NAME}", name, MADE_BY_MODULE)
            return read_table("model", given, {NAME: Key(str, name), **keys})
    return read_noun("model", given, Model, Logistic())


def _read_algorithm(given: Any) -> dict[str, Any]:
    """The algorithm's own keys.

    One file serves all algorithms: keys that others have, such as q for FedAvg, are checked and left out.
    """
    if not isinstance(given, dict):
        raise InputError("algorithm", given, "must be a table")
    refuse_misplaced_keys("algorithm", given)
    name = Key(str, "safari").read(f"algorithm.{NAME}", given.get(NAME, "safari"))
    cls = _algorithm_class(name)
    keys = keys_of_class(cls, f"algorithm.{NAME}", name)
    used = {cls.table} if cls.table else set(keys)
    for key, value in given.items():
        if key not in used and key != NAME:
            _check_unused(key, value, used)
    if cls.table is None:
        own = {key: _fitting(keys[key].noun, value) for key, value in given.items() if key in used}
        return {NAME: name, **read_table("algorithm", own, keys)}
    side = given.get(cls.table, {})
    side = {NAME: side} if isinstance(side, str) else side
    if not isinstance(side, dict):
        raise InputError(f"algorithm.{cls.table}", side, "must be a table")
    side = {**_written_for(cls, name, side), NAME: name}
    return {NAME: name, cls.table: read_noun(f"algorithm.{cls.table}", side, Algorithm, None)}


def _algorithm_class(name: str) -> type[Algorithm]:
    return ALGORITHMS.find(name, f"algorithm.{NAME}")


def _fitting(noun: type | None, value: Any) -> Any:
    """The table of a part: of FedCLG-C's clients, say, which no other method can stand for.

    Written for another method, it says how long and how fast this one trains.
    """
    side = {NAME: value} if isinstance(value, str) else value
    narrow = noun is not None and issubclass(noun, Algorithm) and noun is not Algorithm
    if not (narrow and isinstance(side, dict) and isinstance(side.get(NAME), str)):
        return value
    assert noun is not None
    if issubclass(_algorithm_class(side[NAME]), noun):
        return value
    name = ALGORITHMS.name_of(noun)
    return {**_written_for(noun, name, side), NAME: name}


def _written_for(cls: type[Algorithm], name: str, side: dict[str, Any]) -> dict[str, Any]:
    """The keys for `cls` of a table that may have been written for another method, and says so."""
    other = side.get(NAME)
    if other in (None, name):
        return side
    classes = [ALGORITHMS[known] for known in ALGORITHMS]
    classes += [ALGORITHMS.find(other, f"algorithm.{cls.table}.{NAME}")] if is_own(str(other)) else []
    elsewhere = {key for one in classes for key in keys_of(one)}
    return {key: value for key, value in side.items() if key in keys_of(cls) or key not in elsewhere}


def _check_unused(key: str, value: Any, used: set[str]) -> None:
    others = {
        name: keys_of(_algorithm_class(name)) for name in ALGORITHMS if not _algorithm_class(name).table
    }
    holder = next((keys for keys in others.values() if key in keys), None)
    if holder is None:
        known = dict.fromkeys((NAME, *used, *(name for keys in others.values() for name in keys)))
        raise InputError(f"algorithm.{key}", value, unknown_name(key, known))
    holder[key].read(f"algorithm.{key}", value)


def _own_names(table: dict[str, Any], path: str) -> Iterable[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _own_names(value, f"{path}{key}.")
        elif key in (NAME, "source") and isinstance(value, str) and is_own(value):
            yield f"{path}{key}", value


def set_key(given: Any, names: list[str], value: Any) -> dict[str, Any]:
    """A copy of nested tables with one value replaced.

    A name that stands for a table becomes that table; any other plain value on the way is replaced.
    """
    table = given if isinstance(given, dict) else {NAME: given} if isinstance(given, str) else {}
    first, *rest = names
    return {**table, first: set_key(table.get(first, {}), rest, value) if rest else value}


def _parse(text: str) -> Any:
    """A value as TOML reads it; anything that is not TOML is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _plain(value: Any) -> Any:
    """What TOML can hold: no None (absent means not set), lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value
