"""The pilot's arms as a table."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from safari.report.statistics import Estimate
from safari.report.tables import mean_deviation


def advice_table(arms: Mapping[Any, Estimate], last: Mapping[Any, float]) -> Table:
    """An arm a row; an arm has a name, a q and a number of server steps."""
    title = "The pilot: test accuracy in %, means over the last ten evaluated rounds"
    table = Table(title=title, title_justify="left")
    table.add_column("algorithm")
    for name in ("q", "server steps", "runs", "what the server left", "after the round"):
        table.add_column(name, justify="right")
    for arm, found in arms.items():
        table.add_row(
            arm.name,
            "" if arm.q is None else f"{arm.q:g}",
            "" if arm.steps is None else str(arm.steps),
            str(found.count),
            mean_deviation(found.mean, found.deviation) if found.count > 1 else f"{found.mean:.2f}",
            f"{last[arm]:.2f}",
        )
    return table
