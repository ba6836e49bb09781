"""The paper's own numbers: eleven tables, as printed."""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal


@dataclass(frozen=True)
class PaperRow:
    """One printed cell. `mean` is in percent, or in points for a gain; None for a printed '-'.

    `inferred` names what the paper does not say beside the number and other numbers of it
    pin down. `p` and `m` are None where nothing in the paper does (Fashion-MNIST).
    """

    dataset: str
    method: str
    p: int | None
    s: int
    m: int | None
    q: float
    server_samples: int | None
    mean: float | None
    deviation: float | None
    tie: bool
    inferred: list[str]


@dataclass(frozen=True)
class PaperTable:
    """A table: accuracies, or gains of SAFARI over FedAvg."""

    key: str
    label: str
    title: str
    metric: Literal["accuracy", "gain"]
    rows: tuple[PaperRow, ...]


@lru_cache(maxsize=1)
def paper_tables() -> dict[str, PaperTable]:
    """All tables by key, in the paper's order."""
    content = json.loads(files("safari.paper").joinpath("numbers.json").read_text(encoding="utf-8"))
    tables = {}
    for table in content["tables"]:
        rows = tuple(PaperRow(**dict(zip(content["columns"], row, strict=True))) for row in table["rows"])
        tables[table["key"]] = PaperTable(table["key"], table["label"], table["title"], table["metric"], rows)
    return tables
