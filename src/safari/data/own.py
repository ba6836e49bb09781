"""The user's own samples as one `Dataset`: the clients', the server's, the test set."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from safari.data.dataset import Dataset
from safari.data.reading import Options, read_path
from safari.data.samples import Samples
from safari.data.split import hold_out_fifth
from safari.errors import check

Stamp = tuple[tuple[str, int, int], ...]


def dataset_of(train: Samples, server: Samples | None = None, test: Samples | None = None) -> Dataset:
    """All samples as one data set; the server's own come last.

    Without a test set every fifth sample of each class is held out, and no client loses all that it has.

    Raises:
        InputError: if the samples do not go together.
    """
    test = train.test if test is None else test
    train = replace(train, test=None)
    if test is None:
        train, test = _held_out(train)
    else:
        train, test = _with_all_classes(train, test)
    x, y, client = train.x, train.y, train.client
    if server is not None:
        server = server.like(train, "server")
        check(len(server) > 0, "server", server.origin, "has no sample")
        x, y = np.concatenate([x, server.x]), np.concatenate([y, server.y])
        client = None if client is None else np.concatenate([client, np.full(len(server), -1, np.int32)])
    names = train.clients
    return Dataset(
        x,
        y,
        test.x,
        test.y,
        name=train.name,
        client=client,
        labels=train.labels,
        client_names=None if names is None or names == tuple(map(str, range(len(names)))) else names,
        test_client=test.client,
        test_clients=test.clients or (),
        features=train.features,
        own_server=0 if server is None else len(server),
        standardise=train.scale == "standard",
        missing=train.missing,
    )


def _with_all_classes(train: Samples, test: Samples) -> tuple[Samples, Samples]:
    """Whole numbers of an .npz file number its classes: the test set may have more of them."""
    if train.labels == test.labels[: len(train.labels)] and train.origin == test.origin:
        return replace(train, labels=test.labels), test
    return train, test.like(train, "test")


def _held_out(train: Samples) -> tuple[Samples, Samples]:
    test = hold_out_fifth(train.y, train.client)
    hint = 'is too small to hold a test set out; add x_test and y_test, or give test = "FILE"'
    check(test.any(), "source", train.origin, hint)
    kept, out = (
        replace(
            train,
            x=train.x[rows],
            y=train.y[rows],
            client=None if train.client is None else train.client[rows],
        )
        for rows in (~test, test)
    )
    return kept, out


def load_own(source: Path, options: Options, server: Path | None = None, test: Path | None = None) -> Dataset:
    """The data set that files describe; read once for all runs of a sweep."""
    stamps = tuple(stamp(path) for path in (source, server, test))
    return _load_own(source, options, server, test, stamps)


@lru_cache(maxsize=2)
def _load_own(
    source: Path, options: Options, server: Path | None, test: Path | None, stamps: tuple[Stamp, ...]
) -> Dataset:
    def extra(path: Path | None, key: str) -> Samples | None:
        return None if path is None else read_path(path, options.of_extra(key))

    return dataset_of(read_path(source, options), extra(server, "server"), extra(test, "test"))


def stamp(path: Path | None) -> Stamp:
    """Changes when a file, or one in a folder, does."""
    if path is None or not path.exists():
        return ()
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    return tuple((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in files)
