"""The table `[data]` of a spec: its keys depend on where the samples come from."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from safari.data import Classes, File, Nodes, ServerSet, federate
from safari.data.federating import NO_SERVER
from safari.data.reading import names_clients
from safari.data.sources import source_class
from safari.errors import InputError, check, naming
from safari.experiment.old_keys import refuse_old_keys
from safari.experiment.schema import NAME, REQUIRED, Key, keys_of, keys_of_class, read_table

AT_SERVER = ("augment", "validation", "fold", "score", "seed")
"""Keys of `[data]` about what lies at the server, wherever the clients' samples lie."""

FEDERATE = (*AT_SERVER, "client_test")
"""Keys of `[data]` that `federate` takes as they are, whatever the source."""


def read_data(given: Any, seed: int) -> dict[str, Any]:
    """The keys of the source stand in `[data]` itself; partition and server have tables of their own."""
    if not isinstance(given, dict):
        raise InputError("data", given, "must be a table")
    refuse_old_keys("data", given)
    source = Key(str, "digits").read("data.source", given.get("source", "digits"))
    with naming("data"):
        cls = source_class(source)
    keys = seeded(data_keys(), seed)
    if cls is Nodes:
        return _read_nodes_data(given, keys)
    if cls is File:
        return _read_file_data({**given, "source": os.path.abspath(source)}, keys)
    for key in ("server", "test"):
        if key == "test" or isinstance(given.get(key), str):
            own = f"is for a source that is a file or folder; {source} has its own test set"
            check(key not in given, f"data.{key}", given.get(key), own)
    keys = {name: key for name, key in keys.items() if name != "test"}
    keys = {**keys_of_class(cls, "data.source", source, taken=("source", *keys)), **keys}
    return read_table("data", {**given, "source": source}, {"source": Key(str, source), **keys})


def data_keys() -> dict[str, Key]:
    """The keys of `[data]` beside those of the source."""
    keys = keys_of(federate, ("source", "folder"))
    keys["partition"] = replace(keys["partition"], hint=None, default=Classes())
    keys["server"] = replace(keys["server"], hint=Path, default=ServerSet())
    keys["test"] = replace(keys["test"], hint=Path | None)
    return keys


def _read_nodes_data(given: dict[str, Any], keys: dict[str, Key]) -> dict[str, Any]:
    """The same for samples that lie on nodes: nobody splits them, and the server has a file of its own."""
    files = {"server": Key(Path, REQUIRED, "the file of the server's own samples"), "test": keys["test"]}
    rest = {key: keys[key] for key in AT_SERVER}
    return read_table("data", given, {"source": Key(str, "nodes"), **keys_of(Nodes), **files, **rest})


def _read_file_data(given: dict[str, Any], keys: dict[str, Key]) -> dict[str, Any]:
    """The same for a file: whether it names clients decides on the partition, where none is given."""
    fields = {"source": Key(str, given["source"]), **keys_of(File, ("path",))}
    table = read_table("data", given, {**fields, **keys})
    path = Path(given["source"])
    if "partition" not in given and names_clients(path, table["client"]):
        table["partition"] = {NAME: "column"}
    if "server" not in given and path.exists() and not File(path).draws_server:
        raise InputError("data.server", "(nothing)", NO_SERVER)
    return table


def seeded(keys: dict[str, Key], seed: int) -> dict[str, Key]:
    """The keys with the seed of training as the default of their own."""
    return {**keys, "seed": replace(keys["seed"], default=seed)}
