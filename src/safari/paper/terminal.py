"""A reproduction for the terminal, and as one flat table."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.table import Table

from safari.paper.compare import Comparison
from safari.paper.directory import Reproduction
from safari.paper.effects import Effect
from safari.paper.numbers import paper_tables
from safari.report.statistics import Estimate
from safari.report.tables import mean_deviation

NAMES = {"fedavg": "FedAvg", "safari": "SAFARI", "server-only": "server only", "literal": "one server step"}
VERDICT = {True: "present", False: "absent", None: "runs missing"}


def comparison_rows(key: str, comparisons: list[Comparison]) -> list[dict[str, Any]]:
    """A row a printed number: where it stands, ours, the paper's."""
    return [
        {
            "table": key,
            "dataset": one.paper.dataset,
            "method": one.paper.method,
            "p": one.setting.p,
            "s": one.paper.s,
            "m": one.setting.m,
            "q": one.paper.q,
            "server_samples": one.setting.server_samples,
            "metric": one.metric,
            **_columns("ours", one.ours),
            "paper": one.paper.mean,
            "paper_deviation": one.paper.deviation,
            "paper_tie": one.paper.tie,
            "difference": one.difference,
            **_columns("accuracy", one.accuracy),
            "paper_accuracy": one.paper_accuracy,
            **_columns("server_only", one.server_only),
            **_columns("literal", one.literal),
        }
        for one in comparisons
    ]


def flat_table(reproduction: Reproduction) -> pl.DataFrame:
    """Every printed number of every table, one row each."""
    rows = [row for key, found in reproduction.comparisons().items() for row in comparison_rows(key, found)]
    return pl.DataFrame(rows, infer_schema_length=None)


def terminal_tables(reproduction: Reproduction) -> list[Table]:
    """The tables, the fixed-coverage runs and the effects."""
    found = [_comparison_table(key, rows) for key, rows in reproduction.comparisons().items()]
    coverage = reproduction.results.coverage() if "mnist" in reproduction.datasets else []
    if coverage:
        found.append(_coverage_table(coverage))
    found.append(_effects_table(reproduction.effects()))
    return found


def difference_summary(comparisons: list[Comparison]) -> str:
    """How far ours are from the paper's, in one line."""
    apart = [abs(one.difference) for one in comparisons if one.difference is not None]
    missing = sum(one.ours is None for one in comparisons)
    ties = [one.ties_agree for one in comparisons if one.ties_agree is not None and one.paper.tie]
    parts = []
    if apart:
        parts.append(f"mean absolute difference {sum(apart) / len(apart):.2f}, largest {max(apart):.2f}")
    if ties:
        parts.append(f"{sum(ties)} of {len(ties)} '-' confirmed")
    if missing:
        parts.append(f"{missing} of {len(comparisons)} missing")
    return "; ".join(parts)


def _comparison_table(key: str, comparisons: list[Comparison]) -> Table:
    title = f"{key}: {paper_tables()[key].title} ({difference_summary(comparisons)})"
    table = Table(title=title, title_justify="left")
    columns = comparison_columns(comparisons)
    for name in columns:
        table.add_column(name, justify="right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(text for text, _ in row))
    return table


def comparison_columns(comparisons: list[Comparison]) -> dict[str, list[tuple[str, float | None]]]:
    """The columns of a table for people: texts, and the numbers behind them.

    A setting that is the same in all rows has no column; neither have companions that none
    of the rows has.
    """
    found: dict[str, list[tuple[str, float | None]]] = {
        "data": [(one.paper.dataset, None) for one in comparisons],
        "method": [(NAMES[one.paper.method], None) for one in comparisons],
        "p": [_number(one.setting.p) for one in comparisons],
        "s": [_number(one.paper.s) for one in comparisons],
        "m": [_number(one.setting.m) for one in comparisons],
        "q": [_number(one.paper.q) for one in comparisons],
        "n_T": [_number(one.setting.server_samples) for one in comparisons],
    }
    found = {name: column for name, column in found.items() if len(set(column)) > 1}
    found["ours"] = [_cell(one.ours) for one in comparisons]
    found["paper"] = [_printed(one) for one in comparisons]
    found["difference"] = [_difference(one) for one in comparisons]
    if comparisons[0].metric == "gain":
        found["accuracy"] = [_cell(one.accuracy) for one in comparisons]
        found["paper's"] = [_number(one.paper_accuracy, ".2f") for one in comparisons]
    assisted = [one.paper.method == "safari" for one in comparisons]
    if any(assisted):
        pairs = list(zip(comparisons, assisted, strict=True))
        found["server only"] = [_cell(one.server_only) if yes else ("", None) for one, yes in pairs]
        found["one step"] = [_cell(one.literal) if yes else ("", None) for one, yes in pairs]
    return found


def _number(value: float | None, how: str = "g") -> tuple[str, float | None]:
    return ("" if value is None else format(value, how), value)


def _cell(found: Estimate | None) -> tuple[str, float | None]:
    return (_text(found), None if found is None else found.mean)


def _printed(one: Comparison) -> tuple[str, float | None]:
    return (
        ("-", None)
        if one.paper.tie
        else (mean_deviation(one.paper.mean, one.paper.deviation), one.paper.mean)
    )


def _difference(one: Comparison) -> tuple[str, float | None]:
    if one.difference is not None:
        return f"{one.difference:+.2f}", one.difference
    return {None: "", True: "tie as well", False: "no tie here"}[one.ties_agree], None


def _coverage_table(coverage: Sequence[tuple[str, int, Estimate]]) -> Table:
    table = Table(title="MNIST, p = 2, s = 4: accuracy by the classes that are covered", title_justify="left")
    for name in ("method", "classes covered", "runs", "accuracy"):
        table.add_column(name, justify="right")
    for method, covered, found in coverage:
        table.add_row(method, str(covered), str(found.count), _text(found))
    return table


def _effects_table(effects: list[Effect]) -> Table:
    table = Table(title="Effects that the paper's text claims", title_justify="left")
    for name in ("data", "claim", "ours", "verdict"):
        table.add_column(name)
    for one in effects:
        values = ", ".join("?" if value is None else f"{value:.2f}" for value in one.values)
        table.add_row(one.dataset, one.claim, values, VERDICT[one.present])
    return table


def _text(found: Estimate | None) -> str:
    if found is None:
        return "missing"
    return mean_deviation(found.mean, found.deviation if found.count > 1 else None)


def _columns(name: str, found: Estimate | None) -> dict[str, Any]:
    if found is None:
        return {name: None, f"{name}_deviation": None, f"{name}_runs": 0}
    deviation = found.deviation if found.count > 1 else None
    return {name: found.mean, f"{name}_deviation": deviation, f"{name}_runs": found.count}
