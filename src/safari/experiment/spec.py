"""`Spec`: an experiment as text, complete and checked; and the nouns that it describes."""

import importlib
import os
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import tomli_w

from safari.algorithms import CLIENT_ALGORITHMS, AdaptiveQ, Algorithm, Safari, ServerSGD
from safari.data import PARTITIONS, Federation, ServerSet, federate
from safari.data.sources import NAMED
from safari.engine import Run, check_train, prepare
from safari.errors import InputError, check, naming
from safari.experiment.schema import Key, keys_of, read_table, unknown
from safari.experiment.versions import versions
from safari.models import MODELS, Model
from safari.participation import AVAILABILITIES, Availability, Participation
from safari.verb import train

TABLES = ("data", "participation", "model", "algorithm", "train")
SERVER_ONLY = "server-only"
ADAPTIVE = "adaptive"
"""What `algorithm.q` may hold instead of a number; or a table of `AdaptiveQ`'s keys."""
ALGORITHMS = ("safari", SERVER_ONLY, *CLIENT_ALGORITHMS)


@dataclass(frozen=True)
class Spec:
    """A complete experiment: five tables, every default written out."""

    tables: dict[str, dict[str, Any]]

    @property
    def seed(self) -> int:
        return self.tables["train"]["seed"]

    def prepare(self, federation: Federation | None = None) -> Run:
        """Build all parts and bind them; raises `InputError` if they do not fit.

        `federation` is the one that `[data]` describes, where it has been built already.
        """
        train_table = self.tables["train"]
        federation = self.federation() if federation is None else federation
        model = self.model()
        if ":" in self.tables["model"]["name"]:
            _try_model(self.tables["model"]["name"], model, federation)
        return prepare(
            federation,
            self.algorithm(federation),
            model,
            self.participation(),
            train_table["rounds"],
            train_table["seed"],
            train_table["evaluate_every"],
            train_table["precision"],
        )

    def federation(self) -> Federation:
        return _build("data", _federation_of_flat_keys, self.tables["data"])

    def participation(self) -> Participation:
        table = dict(self.tables["participation"])
        availability = dict(table.pop("availability"))
        pattern = AVAILABILITIES[availability.pop("name")]
        return _build(
            "participation",
            Participation,
            {**table, "availability": _build("participation.availability", pattern, availability)},
        )

    def model(self) -> Model:
        table = dict(self.tables["model"])
        return _build("model", model_class(table.pop("name")), table)

    def algorithm(self, federation: Federation) -> Algorithm:
        table = self.tables["algorithm"]
        clients_table = dict(table["clients"])
        kind = CLIENT_ALGORITHMS[clients_table.pop("name")]
        clients = _build("algorithm.clients", kind, clients_table)
        if table["name"] in CLIENT_ALGORITHMS:
            return clients
        server = _build("algorithm.server", ServerSGD, table["server"])
        if table["name"] == SERVER_ONLY:
            return server.bind(federation, clients)
        q = _build("algorithm.q", AdaptiveQ, table["q"]) if isinstance(table["q"], dict) else table["q"]
        return _build("algorithm", Safari, {"clients": clients, "server": server, "q": q})

    def to_toml(self) -> str:
        """The spec as a file, with the versions that it was written by."""
        return tomli_w.dumps({**self.plain(), "versions": versions()})

    def plain(self) -> dict[str, Any]:
        """The tables without what is not set, as TOML can hold them."""
        return _plain(self.tables)


def load_spec(path: str | Path, overrides: Iterable[str] = ()) -> Spec:
    """Read a TOML file; `overrides` are `key.path=value` and win over it."""
    return complete(apply_overrides(read_toml(Path(path)), overrides))


def read_toml(path: Path) -> dict[str, Any]:
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
        if names[:2] == ["algorithm", "q"] and len(names) > 2:
            given = _adaptive(given)
        given = set_key(given, names, _parse(text.strip()), path)
    return given


def _adaptive(given: dict[str, Any]) -> dict[str, Any]:
    """With a table for `algorithm.q` where a number or a name stood: its keys are being set."""
    table = given.get("algorithm")
    if isinstance(table, dict) and not isinstance(table.get("q", {}), dict):
        return {**given, "algorithm": {**table, "q": {}}}
    return given


def complete(given: dict[str, Any]) -> Spec:
    """Check what was given and write every default out."""
    given = {name: value for name, value in given.items() if name != "versions"}
    for name in given:
        if name == "sweep":
            raise InputError(name, given[name], "is for `safari sweep`; leave the table out for a single run")
        if name not in TABLES:
            raise InputError(name, given[name], unknown(name, TABLES))
    tables = {name: given.get(name, {}) for name in TABLES}
    train_keys = keys_of(train, ("federation", "algorithm", "model", "participation", "on_progress"))
    train_table = read_table("train", tables["train"], train_keys)
    check_train(train_table["rounds"], train_table["seed"], train_table["evaluate_every"])
    return Spec(
        {
            "data": _read_data(tables["data"], train_table["seed"]),
            "participation": _read_participation(tables["participation"], train_table["seed"]),
            "model": _read_named("model", tables["model"], "logistic", model_class),
            "algorithm": _read_algorithm(tables["algorithm"]),
            "train": train_table,
        }
    )


def with_algorithm(given: dict[str, Any], name: str, seed: int) -> dict[str, Any]:
    """What was given, but for another algorithm and seed; keys that it lacks are left out."""
    if name not in ALGORITHMS:
        raise InputError("--algorithms", name, f"must be one of {', '.join(ALGORITHMS)}")
    given = set_key(given, ["train", "seed"], seed, "train.seed")
    given = set_key(given, ["algorithm", "name"], name, "algorithm.name")
    if name in CLIENT_ALGORITHMS:
        table = given["algorithm"].get("clients", {})
        known = keys_of(CLIENT_ALGORITHMS[name])
        elsewhere = {key for kind in CLIENT_ALGORITHMS.values() for key in keys_of(kind)} - set(known)
        kept = {key: value for key, value in table.items() if key not in elsewhere}
        given = set_key(given, ["algorithm", "clients"], kept, "algorithm.clients")
    return given


def model_class(name: str) -> type[Model]:
    """A model by its name, or the user's own by `module:Class`."""
    if name in MODELS:
        return MODELS[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InputError("model.name", name, f"must be one of {', '.join(MODELS)}, or module:Class")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError("model.name", name, f"cannot be imported ({error})") from None
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise InputError("model.name", name, "is not a subclass of safari.Model")
    return found


def _try_model(name: str, model: Model, federation: Federation) -> None:
    """Refuse a model of the user's own that fails on this data, before anything is written."""
    shape, classes = federation.dataset.shape, federation.dataset.classes
    batch = jax.ShapeDtypeStruct((2, *shape), jnp.float32)
    try:
        params = jax.eval_shape(lambda: model.init(jax.random.key(0), shape, classes))
        logits = jax.eval_shape(model.apply, params, batch)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise InputError("model.name", name, f"fails on samples of shape {shape} ({reason})") from None
    if getattr(logits, "shape", None) != (2, classes):
        raise InputError("model.name", name, f"must give logits of shape (batch, {classes})")


def _read_data(given: Any, seed: int) -> dict[str, Any]:
    keys = keys_of(_federation_of_flat_keys)
    keys["seed"] = replace(keys["seed"], default=seed)
    table = read_table("data", given, keys)
    if table["source"].endswith(".npz"):
        table["source"] = os.path.abspath(table["source"])
    if table["folder"] is not None:
        table["folder"] = os.path.abspath(table["folder"])
    return table


def _federation_of_flat_keys(
    source: str = "digits",
    clients: int | None = None,
    partition: Literal["classes", "dirichlet", "iid", "client"] = "classes",
    classes_per_client: int = 1,
    alpha: float = 0.5,
    size_skew: float = 0.0,
    samples_per_client: int | None = None,
    server_samples: int = 100,
    server_disjoint: bool = True,
    server_missing_classes: tuple[int, ...] = (),
    server_alpha: float | None = None,
    augment: bool | None = None,
    folder: str | None = None,
    seed: int = 0,
) -> Federation:
    """The federation of a `[data]` table, whose keys are those of all partitions and the server's."""
    sizes = {"samples_per_client": samples_per_client, "size_skew": size_skew}
    given = {**sizes, "classes_per_client": classes_per_client, "alpha": alpha}
    if clients is not None:
        given["clients"] = clients
    noun = PARTITIONS[partition]
    try:
        with naming("server"):
            server = ServerSet(server_samples, server_disjoint, server_missing_classes, server_alpha)
        own = noun(**{key: given[key] for key in keys_of(noun) if key in given})
        folder = folder if source in NAMED else None
        federation = federate(source, own, server, augment=augment, folder=folder, seed=seed)
    except InputError as error:
        key = error.key.replace("server.", "server_").removeprefix("partition.")
        raise InputError(key, error.value, error.allowed) from None
    fits = clients in (None, federation.size)
    check(fits, "clients", clients, f"the file's client column has {federation.size}")
    return federation


def _read_participation(given: Any, seed: int) -> dict[str, Any]:
    given = dict(given) if isinstance(given, dict) else given
    availability = given.pop("availability", {}) if isinstance(given, dict) else {}
    keys = keys_of(Participation, ("availability",))
    keys["seed"] = replace(keys["seed"], default=seed)
    table = read_table("participation", given, keys)
    pattern = _read_named("participation.availability", availability, "always", _availability_class)
    if "file" in pattern:
        pattern["file"] = os.path.abspath(pattern["file"])
    return {**table, "availability": pattern}


def _availability_class(name: str) -> type[Availability]:
    if name not in AVAILABILITIES:
        allowed = f"must be one of {', '.join(AVAILABILITIES)}"
        raise InputError("participation.availability.name", name, allowed)
    return AVAILABILITIES[name]


def _read_named(path: str, given: Any, default: str, find: Any) -> dict[str, Any]:
    """A table whose `name` decides which other keys it has."""
    if not isinstance(given, dict):
        raise InputError(path, given, "must be a table")
    name = Key(str, default).read(f"{path}.name", given.get("name", default))
    return read_table(path, given, {"name": Key(str, name), **keys_of(find(name))})


def _read_algorithm(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InputError("algorithm", given, "must be a table")
    parts = {"clients": Key(dict, {}), "server": Key(dict, {})}
    keys = {"name": Key(str, "safari"), **keys_of(Safari, ("clients", "server")), **parts}
    if isinstance(given.get("q"), str) and given["q"] != ADAPTIVE:
        raise InputError("algorithm.q", given["q"], f'must be a number, "{ADAPTIVE}", or a table of its keys')
    adaptive = given.get("q") == ADAPTIVE or isinstance(given.get("q"), dict)
    table = read_table("algorithm", {**given, "q": 0.0} if adaptive else given, keys)
    if adaptive:
        wanted = {} if given["q"] == ADAPTIVE else given["q"]
        table["q"] = read_table("algorithm.q", wanted, keys_of(AdaptiveQ))
    if table["name"] not in ALGORITHMS:
        raise InputError("algorithm.name", table["name"], f"must be one of {', '.join(ALGORITHMS)}")
    clients = dict(table["clients"])
    if table["name"] in CLIENT_ALGORITHMS:
        clients["name"] = table["name"]
    table["clients"] = _read_named("algorithm.clients", clients, "fedavg", _client_class)
    table["server"] = read_table("algorithm.server", table["server"], keys_of(ServerSGD))
    return table


def _client_class(name: str) -> Any:
    if name not in CLIENT_ALGORITHMS:
        raise InputError("algorithm.clients.name", name, f"must be one of {', '.join(CLIENT_ALGORITHMS)}")
    return CLIENT_ALGORITHMS[name]


def _build(path: str, noun: Any, table: dict[str, Any]) -> Any:
    with naming(path):
        return noun(**table)


def set_key(given: dict[str, Any], names: list[str], value: Any, path: str) -> dict[str, Any]:
    """A copy of nested tables with one value replaced."""
    if not isinstance(given, dict):
        raise InputError(path, value, "leads through a key that is not a table")
    first, *rest = names
    return {**given, first: set_key(given.get(first, {}), rest, value, path) if rest else value}


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
