"""The pilot's arms as a table."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.table import Table

from safari.report.statistics import Estimate
from safari.report.tables import mean_deviation


def advice_table(
    scores: Mapping[Any, Estimate],
    over_own: Mapping[Any, Estimate],
    words: str,
    named: Callable[[Any], str],
) -> Table:
    """An arm a row: its score, and for the finalists the difference to the user's spec."""
    table = Table(title=f"The pilot: {words} on held-out samples", title_justify="left")
    table.add_column("setting")
    for name in ("folds", "score", "against your spec", "95 % interval"):
        table.add_column(name, justify="right")
    for arm, found in scores.items():
        gain = over_own.get(arm)
        table.add_row(
            named(arm),
            str(found.count),
            mean_deviation(found.mean, found.deviation) if found.count > 1 else f"{found.mean:.2f}",
            "" if gain is None else f"{gain.mean:+.1f}",
            "" if gain is None else f"{gain.low:+.1f} to {gain.high:+.1f}",
        )
    return table
