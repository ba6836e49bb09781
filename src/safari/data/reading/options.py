"""How a table is to be read: which column is what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from safari.data.samples import Missing, Samples, Scale, check_known, texts
from safari.errors import check, check_choice

LABEL, CLIENT = "label", "client"


@dataclass(frozen=True)
class Options:
    """Which column holds the labels and which the clients, what is left out, what becomes of gaps.

    `key` is the argument or key that named the samples, for messages. Samples that go `with` others,
    such as the server's, need no clients: theirs are not looked at. Those have the columns `beside`, where
    they have names, and `drop` may name a column that only a file `elsewhere` has.
    """

    label: str | None = None
    client: str | bool | None = None
    labels: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    missing: Missing | None = None
    scale: Scale | None = None
    key: str = "source"
    extra: bool = False
    beside: tuple[str, ...] | None = None
    beside_origin: str = ""
    elsewhere: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.missing is not None:
            check_choice("missing", self.missing, ("mean",))
        if self.scale is not None:
            check_choice("scale", self.scale, ("standard", "none"))
        if self.labels is not None:
            once = len(self.labels) == len(set(self.labels)) > 1
            check(once, "labels", list(self.labels), "must be two names or more, each once")

    def of_extra(self, key: str, source: Samples) -> "Options":
        """The same for samples that go with `source`, which these read: the server's, or the test set."""
        return replace(self, key=key, extra=True, beside=source.features, beside_origin=source.origin)

    def label_column(self, columns: Sequence[str], origin: str) -> str:
        """The column that holds the labels."""
        if self.label is not None:
            check_known("label", self.label, columns, f"column of {origin}")
            return self.label
        hint = f"{origin} has no column {LABEL}; say which one holds the labels: {_some(columns)}"
        check(LABEL in columns, "label", "(not set)", hint)
        return LABEL

    def client_column(self, columns: Sequence[str], origin: str) -> str | None:
        """The column that says who holds a sample."""
        if isinstance(self.client, str):
            if not self.extra:
                check_known("client", self.client, columns, f"column of {origin}")
            return self.client if self.client in columns else None
        if self.client is True and not self.extra:
            check(
                CLIENT in columns, "client", True, f"{origin} has no column {CLIENT}; it has {_some(columns)}"
            )
        return CLIENT if self.client is not False and CLIENT in columns else None

    def check_dropped(self, columns: Sequence[str], origin: str) -> None:
        """Refuse to leave out what no file has."""
        for name in () if self.extra else self.drop:
            if name not in self.elsewhere:
                check_known("drop", name, columns, f"column of {origin}")

    def feature_columns(self, columns: Sequence[str], taken: Sequence[str | None], origin: str) -> list[str]:
        """The columns that remain."""
        self.check_dropped(columns, origin)
        for name in self.drop:
            check(name not in taken, "drop", name, "is the column of the labels or the clients")
        found = [name for name in columns if name not in taken and name not in self.drop]
        check(bool(found), self.key, origin, "has no column left for the features")
        if self.beside is not None:
            self._refuse_others([name for name in found if name not in self.beside], origin)
        return found

    def _refuse_others(self, names: Sequence[str], origin: str) -> None:
        """Columns that the samples beside these lack are refused before their values are looked at."""
        if not names:
            return
        columns = f"column{'' if len(names) == 1 else 's'} {', '.join(names)}"
        clients = f'write client = "{names[0]}" if that names the clients, or ' if self.client is None else ""
        hint = f"{clients}leave {'it' if len(names) == 1 else 'them'} out with drop = {texts(names)}"
        check(False, self.key, origin, f"has {columns}, which {self.beside_origin} lacks; {hint}")

    def finish(self, samples: Samples) -> Samples:
        """The samples with what these options say of them; `scale` by what they are, where it is not set."""
        flat = samples.x.ndim == 2 and samples.x.dtype != "uint8"
        scale = self.scale or ("standard" if flat else "none")
        return replace(samples, missing=self.missing, scale=scale, options=self)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
