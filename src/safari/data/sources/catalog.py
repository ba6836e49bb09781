"""The named data sets: what they are, where they may lie, and how to get them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.sources import cifar, idx
from safari.data.sources.digits import load_digits
from safari.data.sources.download import Download, cache_folder, fetch
from safari.errors import InputError, check


@dataclass(frozen=True)
class Published:
    """A data set that lies in files: which folders may hold them and how to read them."""

    subfolders: tuple[str, ...]
    present: Callable[[Path], bool]
    read: Callable[[Path], Dataset]
    download: Download


@dataclass(frozen=True)
class Entry:
    """One named data set; `published` is None for the embedded one."""

    name: str
    about: str
    published: Published | None = None

    def load(self, folder: Path | str | None) -> Dataset:
        if self.published is None:
            return load_digits()
        place = self.find(folder)
        if place is not None:
            return _read(self.name, place)
        if folder is not None:
            raise InputError("folder", folder, f"holds no {self.name} in its published layout")
        raise InputError(
            "source",
            self.name,
            f"not on this machine: run `safari data fetch {self.name}`, "
            "or set SAFARI_DATA or data.folder to the folder that has it",
        )

    def find(self, folder: Path | str | None) -> Path | None:
        """The folder that holds the files, if any does."""
        if self.published is None:
            return None
        places = [root / sub for root in search_folders(folder) for sub in self.published.subfolders]
        return next(filter(self.published.present, places), None)

    def fetch(self, progress: bool = True) -> Path:
        """Download into the cache; returns the folder to read from."""
        if self.published is None:
            raise InputError("source", self.name, "is embedded; there is nothing to fetch")
        fetch(self.name, self.published.download, cache_folder() / self.name, progress)
        place = self.find(None)
        if place is None:
            raise InputError("source", self.name, "was fetched but its files are not where they should be")
        return place


def search_folders(folder: Path | str | None) -> list[Path]:
    """Where to look, best first; a folder that the user named is the only one."""
    if folder is not None:
        check(Path(folder).is_dir(), "folder", folder, "no such folder")
        return [Path(folder)]
    named = os.environ.get("SAFARI_DATA")
    return ([Path(named)] if named else []) + [cache_folder()]


@lru_cache(maxsize=2)
def _read(name: str, place: Path) -> Dataset:
    """Reading takes longer than many a run; comparisons read the same set again and again."""
    published = CATALOG[name].published
    assert published is not None
    return published.read(place)


def _idx(
    name: str, about: str, torch_name: str, mirrors: tuple[str, ...], checksums: tuple[str, ...]
) -> Entry:
    files = {f"{stem}.gz": f"md5:{md5}" for stem, md5 in zip(idx.FILES.values(), checksums, strict=True)}
    places = (name, f"{torch_name}/raw", ".")
    read = partial(idx.load_idx, name=name)
    return Entry(name, about, Published(places, idx.present, read, Download(mirrors, files)))


_CIFAR_PLACES = ("cifar-10-batches-bin", "cifar-10-batches-py", ".")
CATALOG = {
    entry.name: entry
    for entry in (
        Entry("digits", "1,797 handwritten digits, 8 x 8; embedded (scikit-learn)"),
        _idx(
            "mnist",
            "70,000 handwritten digits, 28 x 28 (LeCun, Cortes, Burges)",
            "MNIST",
            (
                "https://ossci-datasets.s3.amazonaws.com/mnist",
                "https://storage.googleapis.com/cvdf-datasets/mnist",
            ),
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                "d53e105ee54ea40749a09fcbcd1e9432",
                "9fb629c4189551a2d022fa330f9573f3",
                "ec29112dd5afa0611ce80d1b7f02629c",
            ),
        ),
        _idx(
            "fashion-mnist",
            "70,000 pictures of clothes, 28 x 28 (Zalando)",
            "FashionMNIST",
            ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",),
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                "25c81989df183df01b3e8a0aad5dffbe",
                "bef4ecab320f06d8554ea6380940ec79",
                "bb300cfdad3c16e7a12a480ee83cd310",
            ),
        ),
        Entry(
            "cifar10",
            "60,000 colour pictures of ten things, 32 x 32 (Krizhevsky)",
            Published(
                tuple(f"cifar10/{place}" for place in _CIFAR_PLACES) + _CIFAR_PLACES,
                cifar.present,
                cifar.load_cifar10,
                Download(
                    ("https://www.cs.toronto.edu/~kriz",),
                    {"cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530"},
                    unpack=True,
                ),
            ),
        ),
    )
}
