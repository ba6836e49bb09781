"""Where samples come from: the embedded digits, the classic sets, the user's own file or class."""

from safari.data.dataset import Dataset
from safari.data.sources.base import Source
from safari.data.sources.catalog import CATALOG
from safari.data.sources.cifar10 import CIFAR10
from safari.data.sources.digits import Digits
from safari.data.sources.fashion_mnist import FashionMNIST
from safari.data.sources.file import File
from safari.data.sources.mnist import MNIST
from safari.errors import check

NAMED: dict[str, type[Digits | MNIST | FashionMNIST | CIFAR10]] = {
    "digits": Digits,
    "mnist": MNIST,
    "fashion-mnist": FashionMNIST,
    "cifar10": CIFAR10,
}

__all__ = [
    "CATALOG",
    "CIFAR10",
    "MNIST",
    "NAMED",
    "Digits",
    "FashionMNIST",
    "File",
    "Source",
    "find_source",
    "load",
]


def find_source(text: str, folder: str | None = None) -> Source:
    """The source that a text names: one of `NAMED`, or the path of an .npz file.

    `folder` is for the named ones alone: where the published files lie.
    """
    if text in NAMED:
        return NAMED[text](folder)
    known = ", ".join(NAMED)
    check(text.endswith(".npz"), "source", text, f"must be one of {known}, or the path of an .npz file")
    check(folder is None, "folder", folder, f"is for {known}; a path needs none")
    return File(text)


def load(text: str, folder: str | None = None) -> Dataset:
    """Read the data set that a text names, as `find_source` finds it."""
    return find_source(text, folder).load()
