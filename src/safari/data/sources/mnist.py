"""`MNIST`: 70,000 handwritten digits of 28 x 28 pixels."""

from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.sources.base import Source
from safari.data.sources.catalog import CATALOG


class MNIST(Source):
    """70,000 handwritten digits of 28 x 28 pixels in ten classes (LeCun, Cortes, Burges).

    Args:
        folder: where the published files lie; if not given `SAFARI_DATA`, then the folder that
            `safari data fetch mnist` fills.

    Raises:
        InputError: if the files are not there or are damaged.
    """

    folder: Path | None = None

    def load(self) -> Dataset:
        return CATALOG["mnist"].load(self.folder)
