"""The user's own samples as one `Dataset`: the clients', the server's, the test set."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from safari.data.dataset import Dataset
from safari.data.reading import Options, columns_in, read_path
from safari.data.samples import Samples
from safari.data.split import hold_out_fifth
from safari.errors import InputError, check, warn

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
        warn_of_known_samples(test, (train, server))
    x, y, client = train.x, train.y, train.client
    _check_gaps(test, train, "test")
    if server is not None:
        server = server.like(train, "server")
        _check_gaps(server, train, "server")
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
        label=train.label_column,
        own_server=0 if server is None else len(server),
        standardise=train.scale == "standard",
        missing=train.missing,
    )


def _with_all_classes(train: Samples, test: Samples) -> tuple[Samples, Samples]:
    """Whole numbers of an .npz file number its classes: the test set may have more of them."""
    if train.labels == test.labels[: len(train.labels)] and train.origin == test.origin:
        return replace(train, labels=test.labels), test
    return train, test.like(train, "test")


def _check_gaps(samples: Samples, train: Samples, key: str) -> None:
    """Samples with missing values go with such that may have some."""
    if train.missing is not None or samples.x.dtype == np.uint8 or not np.isnan(samples.x).any():
        return
    row, place = (int(one) for one in np.argwhere(np.isnan(samples.x.reshape(len(samples), -1)))[0])
    column = samples.features[place] if samples.features else place
    hint = f'column {column}, row {row + 1} has no value; read {train.origin} with missing = "mean" as well'
    raise InputError(key, samples.origin, hint)


def warn_of_known_samples(test: Samples, others: Iterable[Samples | None]) -> None:
    """Say so where models would be scored on the very samples that they are trained on."""
    for one in others:
        if one is not None and _same_samples(one, test):
            warn(
                f"test = {test.origin}: holds the samples of {one.origin}; no score on them tells of new ones"
            )


def _same_samples(one: Samples, other: Samples) -> bool:
    if one.x.shape != other.x.shape or one.x.dtype != other.x.dtype:
        return False
    try:
        return np.array_equal(one.x, other.like(one, "test").x, equal_nan=one.x.dtype != np.uint8)
    except InputError:  # other columns, or labels: not the same
        return False


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
    others = (path for path in (server, test) if path is not None)
    elsewhere = tuple(name for path in others for name in columns_in(path)) if options.drop else ()
    samples = read_path(source, replace(options, elsewhere=elsewhere))

    def extra(path: Path | None, key: str) -> Samples | None:
        return None if path is None else read_path(path, options.of_extra(key, samples))

    return dataset_of(samples, extra(server, "server"), extra(test, "test"))


def stamp(path: Path | None) -> Stamp:
    """Changes when a file, or one in a folder, does."""
    if path is None or not path.exists():
        return ()
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    return tuple((str(one), one.stat().st_mtime_ns, one.stat().st_size) for one in files)
