"""`File`: the user's own samples, in a file or a folder."""

from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.own import load_own
from safari.data.reading import Options, read_path
from safari.data.samples import Missing, Samples, Scale
from safari.data.sources.base import Source


class File(Source):
    """Samples of your own: a table in a file, or a folder with one such file a client.

    Tables end in `.csv`, `.tsv`, `.parquet`, `.arrow` or `.feather`. A row is a sample; every column that is
    neither label nor client is a feature. An `.npz` file holds the arrays `x` (samples first) and `y`
    (labels), and may hold `client`, `x_test` and `y_test`. Without a test set every fifth sample of each
    class is held out.

    Args:
        path: the path of the file or folder.
        label: the column of the labels, texts or numbers (not set: `label`).
        client: the column that says who holds a sample (not set: `client`, where there is one); `false` if no
            column does. In a folder with a file for each client, it is for the other files that have it.
        labels: the names of all classes, in order (not set: those that occur).
        drop: columns that are left out, of this file and of those of the server and the test set.
        missing: `mean` lets the mean of the server's samples stand for missing values; they are refused
            otherwise.
        scale: `standard` makes every feature mean 0 and deviation 1 over the server's samples; `none` takes
            samples as they are (not set: `standard` for tables, `none` for `.npz` files and images).

    Raises:
        InputError: if the file is not there or holds values that cannot be used.

    Examples:
        >>> import pathlib, tempfile, numpy as np, safari
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "own.npz"
        >>> np.savez(path, x=np.random.default_rng(0).normal(size=(60, 4)), y=np.arange(60) % 3)
        >>> safari.File(path).load().classes
        3
    """

    path: Path
    label: str | None = None
    client: str | bool | None = None
    labels: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    missing: Missing | None = None
    scale: Scale | None = None

    def load(self) -> Dataset:
        return self.load_with(None, None)

    def load_with(self, server: Path | None, test: Path | None) -> Dataset:
        """The same with the files of the server's own samples and of the test set."""
        return load_own(Path(self.path), self._options(), server, test)

    def read(self) -> Samples:
        """The samples of the file alone."""
        return read_path(Path(self.path), self._options())

    @property
    def draws_server(self) -> bool:
        """Whether the server's samples are drawn from the file, where nothing else is said: from arrays."""
        return Path(self.path).suffix.lower() == ".npz"

    def _options(self) -> Options:
        return Options(self.label, self.client, self.labels, tuple(self.drop), self.missing, self.scale)
