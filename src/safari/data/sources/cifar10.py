"""`CIFAR10`: 60,000 colour images of 32 x 32 pixels."""

from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.sources.base import Source
from safari.data.sources.catalog import CATALOG


class CIFAR10(Source):
    """60,000 colour images of 32 x 32 pixels in ten classes (Krizhevsky).

    Training batches are cropped and flipped, unless `augment=False` in `federate`.

    Args:
        folder: where the published files lie; if not given `SAFARI_DATA`, then the folder that
            `safari data fetch cifar10` fills.

    Raises:
        InputError: if the files are not there or are damaged.
    """

    folder: Path | None = None

    def load(self) -> Dataset:
        return CATALOG["cifar10"].load(self.folder)
