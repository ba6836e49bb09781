"""`Nodes`: samples that lie on the nodes of a fleet, each client's on its own."""

from safari.data.dataset import Dataset
from safari.data.reading import Options
from safari.data.samples import Missing, Scale
from safari.data.sources.base import Source
from safari.errors import InputError, check

ELSEWHERE = (
    "the samples lie on the nodes of a fleet, which `safari flower deploy` is for; to simulate it, "
    "name a file or a folder with all samples"
)


class Nodes(Source):
    """Samples that lie on the nodes of a fleet: each names its own file when it is started.

    Nobody else ever reads that file. The server has samples of its own (`data.server`) and a test set
    (`data.test`), and tells the nodes how to read theirs: the columns in their order, the names of the
    classes, mean and deviation of the server's samples.

    Args:
        client_names: the names of all clients, in any order; not set: whoever connects.
        label: the column of the labels, texts or numbers (not set: `label`).
        client: a column that says who holds a sample; it is left out (not set: `client`, where there is one).
        labels: the names of all classes, in order (not set: those of the server's samples).
        drop: columns that are left out, where they are.
        missing: `mean` lets the mean of the server's samples stand for missing values; they are refused
            otherwise.
        scale: `standard` makes every feature mean 0 and deviation 1 over the server's samples; `none` takes
            samples as they are (not set: `standard` for tables, `none` for `.npz` files and images).

    Raises:
        InputError: wherever all samples are needed at once.

    Examples:
        >>> import safari
        >>> safari.Nodes(client_names=("north", "south"), label="diagnosis").client_names
        ('north', 'south')
    """

    client_names: tuple[str, ...] | None = None
    label: str | None = None
    client: str | bool | None = None
    labels: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    missing: Missing | None = None
    scale: Scale | None = None

    def __check_init__(self) -> None:
        if self.client_names is not None:
            once = len(self.client_names) == len(set(self.client_names)) > 0
            check(once, "client_names", list(self.client_names), "must be names, one at least, each once")

    def load(self) -> Dataset:
        raise InputError("source", "nodes", ELSEWHERE)

    def options(self, key: str) -> Options:
        """How a file is read that `key` named."""
        drop = tuple(self.drop)
        return Options(self.label, self.client, self.labels, drop, self.missing, self.scale, key, extra=True)
