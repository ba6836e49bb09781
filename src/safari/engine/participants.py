"""How often each client took part in a run."""

from typing import Any

import numpy as np
import polars as pl

from safari.data import Coverage
from safari.engine.client_metrics import MOST_LISTED


def participation(history: pl.DataFrame, coverage: Coverage | None) -> list[dict[str, Any]] | None:
    """A row a client: in how many rounds it was sent the model, and in how many it sent an update back.

    None where the clients are not known, or too many to be listed.
    """
    if coverage is None or coverage.clients > MOST_LISTED:
        return None
    names = coverage.client_names or tuple(map(str, range(coverage.clients)))
    asked, answered = (_counts(history[column], coverage.clients) for column in ("cohort", "reported"))
    return [
        {"client": client, "name": name, "asked": asked[client], "answered": answered[client]}
        for client, name in enumerate(names)
    ]


def _counts(clients: pl.Series, count: int) -> list[int]:
    found = clients.explode().drop_nulls().to_numpy().astype(np.int64)
    return np.bincount(found, minlength=count).tolist()
