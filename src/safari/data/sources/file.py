"""`File`: the user's own data in one .npz file."""

from pathlib import Path

from safari.data.dataset import Dataset
from safari.data.sources.base import Source
from safari.data.sources.npz import load_npz


def is_file_name(text: str) -> bool:
    """Whether a text is the name of such a file."""
    return text.endswith(".npz")


class File(Source):
    """An .npz file with `x` (samples first) and `y` (labels from 0).

    It may also hold `client` (who holds a sample, from 0: see `ByColumn`), `x_test` and
    `y_test`. Without a test set every fifth sample of each class is held out.

    Args:
        path: the path of the file.

    Raises:
        InputError: if the file is not there, lacks an array or holds values that cannot be used.

    Examples:
        >>> import pathlib, tempfile, numpy as np, safari
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "own.npz"
        >>> np.savez(path, x=np.random.default_rng(0).normal(size=(60, 4)), y=np.arange(60) % 3)
        >>> safari.File(path).load().classes
        3
    """

    path: Path

    def load(self) -> Dataset:
        return load_npz(Path(self.path))
