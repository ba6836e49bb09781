"""The last few states of a server, each with checksums: where one is damaged, the one before is taken."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safari.experiment.checksums import SUMS, Damaged, read_folder
from safari.experiment.directory import write_folder
from safari.experiment.writing import writing

KEPT = 3
"""So many are kept."""


class Generations:
    """Folders `round-N` in a folder, each with its files and their checksums."""

    def __init__(self, folder: Path):
        self.folder = folder

    @writing()
    def save(self, round: int, files: dict[str, bytes]) -> None:
        """Add a generation, whole or not at all; the oldest goes."""
        write_folder(self.folder / f"round-{round:08d}", files)
        _sync(self.folder)
        for other in self._saved()[KEPT:]:
            shutil.rmtree(other, ignore_errors=True)

    def load(self) -> Iterator[dict[str, bytes] | Damaged]:
        """The generations, the newest first: the files of each, or what is wrong with it."""
        for place in self._saved():
            try:
                if not (place / SUMS).is_file():
                    raise Damaged(place / SUMS, "is missing")
                yield read_folder(place)
            except Damaged as error:
                yield error

    def _saved(self) -> list[Path]:
        return sorted(self.folder.glob("round-*"), reverse=True)


@contextmanager
def private() -> Iterator[None]:
    """Files and folders that are made inside are for their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _sync(folder: Path) -> None:
    """Make sure that a renaming in a folder outlives a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
