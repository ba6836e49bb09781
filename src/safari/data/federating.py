"""`federate`: samples are split among clients; the server gets its own, the test set stays apart."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from safari.data.dataset import Dataset
from safari.data.federation import Federation
from safari.data.lone_classes import warn_of_lone_classes
from safari.data.own import dataset_of
from safari.data.partitions import Classes, Partition
from safari.data.partitions.by_column import ByColumn
from safari.data.reading import Options, is_file_name, read_path
from safari.data.samples import Samples
from safari.data.scaling import fitted
from safari.data.server_set import ServerSet, server_stream, split_held_out
from safari.data.sources import File, Nodes, Source, load
from safari.errors import InputError, check, check_choice, check_count, check_seed
from safari.randomness import host_stream
from safari.registry import Noun

Own = Samples | str | Path
NO_SERVER = (
    "must be given for samples of your own: the server's own labelled samples, or how many to draw from "
    "which clients (of all clients, also of those that never take part, if none are named)"
)


def federate(
    source: str | Path | Samples | Dataset | Source = "digits",
    partition: Partition | None = None,
    server: ServerSet | Samples | str | Path | None = None,
    *,
    test: Samples | str | Path | None = None,
    augment: bool | None = None,
    folder: str | None = None,
    validation: float = 0.0,
    fold: int = 0,
    score: Literal["test", "validation"] = "test",
    client_test: float = 0.0,
    seed: int = 0,
) -> Federation:
    """Split a data set among clients; give the server its own samples.

    Args:
        source: samples that `safari.read` has read, or the path of a file or folder that it reads;
            `digits`, `mnist`, `fashion-mnist`, `cifar10`; a `Dataset`, or a `Source`, which may be one of
            your own.
        partition: who holds what: `Classes`, `Dirichlet`, `IID`, `ByColumn`, or a `Partition` of your own
            (default: as the samples' clients say, where they have some, else `Classes()`).
        server: the server's samples: `Samples`, or a file of them, that it brings along; or a `ServerSet`,
            drawn from the whole population before the clients get theirs (default for the named sets and
            `.npz` files: `ServerSet()`).
        test: the test set for samples of your own, or a file of it (default: every fifth sample of each
            class).
        augment: whether to crop and flip training batches (default: for CIFAR-10 alone).
        folder: where the published files of a data set lie (else `SAFARI_DATA`, else the
            fetched ones). Only for a `source` that is a name.
        validation: the share of the server's samples that is held out, class by class. Nobody trains on
            them; what chooses among models or settings looks at them, never at the test set.
        fold: which of the parts is held out: 0 to 4, for example, go through all samples where `validation`
            is 0.2. Only with `validation`.
        score: the samples that models are scored on. `validation` puts the held-out samples in the place
            of the test set, which the federation then does not hold.
        client_test: the share of every client's samples that is held out, class by class. Nobody trains on
            them; the delivered model is scored on them, client by client.
        seed: draws the partition and the server's samples; the seed of training is another one.

    Returns:
        The federation. The same arguments give the same one, bit for bit.

    Raises:
        InputError: if a value is out of range, the parts do not fit the data set, or a `Source` or
            `Partition` of your own returns something else than it should.

    Examples:
        >>> import safari
        >>> clients = safari.Classes(samples_per_client=120)
        >>> federation = safari.federate("digits", clients, safari.ServerSet(50))
        >>> federation.size, federation.server_samples
        (10, 50)
        >>> len(federation.coverage(excluded=[0, 1, 2, 3]).covered_classes)
        6
    """
    known = partition is None or isinstance(partition, Partition)
    check(known, "partition", partition, "must be a Partition, such as Classes()")
    kinds = ServerSet | Samples | str | os.PathLike | None
    check(
        isinstance(server, kinds), "server", server, "must be a ServerSet, such as ServerSet(100), or samples"
    )
    check_seed("seed", seed)
    dataset = _dataset(source, folder, server, test)
    augment = dataset.augment if augment is None else augment
    check(not augment or len(dataset.shape) == 3, "augment", augment, "needs images")
    check(0.0 <= validation < 1.0, "validation", validation, "must be at least 0 and below 1")
    check_count("fold", fold, least=0)
    check(fold == 0 or validation > 0, "fold", fold, "needs held-out samples: set validation")
    check_choice("score", score, ("test", "validation"))
    drawn = server if isinstance(server, ServerSet) else ServerSet()
    taken = _server_samples(dataset, drawn, seed)
    warn_of_lone_classes(dataset, taken)
    held, held_out = split_held_out(taken, np.asarray(dataset.y)[taken], validation, fold)
    check(score == "test" or len(held_out) > 0, "score", score, "needs held-out samples: set validation")
    dataset = fitted(dataset, held)
    rng = host_stream(seed, "partition")
    pool = rng.permutation(len(dataset.y) - dataset.own_server)
    if drawn.disjoint:
        pool = pool[~np.isin(pool, taken)]
    check(len(pool) > 0, "server.samples", drawn.samples, "leaves no sample for the clients")
    partition = partition or (Classes() if dataset.client is None else ByColumn())
    with _blaming("partition", partition):
        parts = partition.split(dataset, pool, rng)
    _check_parts(partition, parts, pool, len(dataset.y))
    if score == "validation":
        dataset = dataset.scored_on(held_out)
    elif not isinstance(partition, ByColumn):
        dataset = dataset.without_test_clients()
    parts, tested = _held_out_by_clients(parts, np.asarray(dataset.y), client_test)
    return Federation.of(dataset, parts, held, augment, held_out, tested)


def _held_out_by_clients(
    parts: list[np.ndarray], labels: np.ndarray, share: float
) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """What each client trains on, and what it holds out."""
    check(0.0 <= share < 1.0, "client_test", share, "must be at least 0 and below 1")
    if share == 0:
        return parts, None
    kept, out = zip(*(split_held_out(part, labels[part], share) for part in parts), strict=True)
    check(any(map(len, out)), "client_test", share, "is so small that no client holds a sample out")
    return list(kept), list(out)


def _server_samples(dataset: Dataset, server: ServerSet, seed: int) -> np.ndarray:
    """The numbers of the server's samples: those that it brought along, in random order, or drawn ones."""
    rng = server_stream(seed)
    if dataset.own_server:
        return len(dataset.y) - dataset.own_server + rng.permutation(dataset.own_server)
    with _blaming("server", server):
        return server.draw(dataset, rng)


def _dataset(
    source: str | Path | Samples | Dataset | Source,
    folder: str | None,
    server: ServerSet | Own | None,
    test: Own | None,
) -> Dataset:
    if isinstance(source, os.PathLike) or (isinstance(source, str) and is_file_name(source)):
        check(folder is None, "folder", folder, "is for a source that is a name, such as mnist")
        source = File(Path(source))
    if isinstance(source, File):
        return _from_file(source, server, test)
    if isinstance(source, Nodes):
        return source.load()
    if isinstance(source, Samples):
        check(server is not None, "server", server, NO_SERVER)
        own = None if isinstance(server, ServerSet | None) else _extra(server, source, "server")
        return dataset_of(source, own, None if test is None else _extra(test, source, "test"))
    for key, value in (("test", test), ("server", None if isinstance(server, ServerSet) else server)):
        check(value is None, key, value, "samples of their own go with samples that safari.read has read")
    if isinstance(source, str):
        return load(source, folder)
    check(folder is None, "folder", folder, "is for a source that is a name, such as mnist")
    if isinstance(source, Dataset):
        return source
    check(isinstance(source, Source), "source", source, "must be a name, a path, a Dataset or a Source")
    with _blaming("source", source):
        dataset = source.load()
    kind = type(dataset).__name__
    check(isinstance(dataset, Dataset), "source", source, f"load must return a safari.Dataset, not {kind}")
    return dataset


def _from_file(source: File, server: ServerSet | Own | None, test: Own | None) -> Dataset:
    check(server is not None or source.draws_server, "server", server, NO_SERVER)
    own = None if isinstance(server, ServerSet) else server
    with _blaming("source", source):
        if isinstance(own, Samples) or isinstance(test, Samples):
            samples = source.read()
            own = None if own is None else _extra(own, samples, "server")
            return dataset_of(samples, own, None if test is None else _extra(test, samples, "test"))
        return source.load_with(None if own is None else Path(own), None if test is None else Path(test))


def _extra(given: Own, source: Samples, key: str) -> Samples:
    """The server's samples or the test set; a file is read as `source` was."""
    if isinstance(given, Samples):
        return given
    try:
        return read_path(Path(given), (source.options or Options()).of_extra(key, source))
    except InputError as error:
        if error.key != "label":
            raise
        hint = f'{error.allowed}; or read it by itself: {key} = safari.read("{given}", label="COLUMN")'
        raise InputError(error.key, error.value, hint) from None


@contextmanager
def _blaming(part: str, noun: Noun) -> Iterator[None]:
    """Name errors about the fields of `noun` under `part`; any other failure is bad input as well.

    A noun may be the user's own, so that whatever it raises is about what the user wrote.
    """
    try:
        yield
    except InputError as error:
        own = error.key in {field.name for field in fields(noun)}
        raise (error.under(part) if own else error) from None
    except Exception as error:
        reason = " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])
        raise InputError(part, noun, f"fails ({reason})") from error


def _check_parts(partition: Partition, parts: Any, pool: np.ndarray, samples: int) -> None:
    """Refuse what a partition of the user's own must not return."""

    def expect(condition: bool | np.bool_, what: str) -> None:
        check(condition, "partition", partition, what)

    arrays = isinstance(parts, list) and all(
        isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu" for part in parts
    )
    expect(arrays, "split must return a list of integer arrays: the sample numbers of each client")
    expect(len(parts) > 0, "split must return at least one client")
    counts = np.array([len(part) for part in parts])
    expect(counts.min() > 0, f"client {counts.argmin()} would hold no sample")
    given = np.concatenate(parts).astype(np.int64)
    in_pool = np.zeros(samples, bool)
    in_pool[pool] = True
    inside = (given >= 0) & (given < samples)
    inside[inside] = in_pool[given[inside]]
    expect(inside.all(), f"split gives sample {given[inside.argmin()]}, which is not in the pool")
    times = np.bincount(given, minlength=samples)
    expect(times.max() < 2, f"split gives sample {times.argmax()} twice")
