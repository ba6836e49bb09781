"""A league on the terminal: what every method gives, and what it costs."""

from collections.abc import Sequence

from rich.table import Table

from safari.league.entries import SAFARI
from safari.league.settings import Setting
from safari.league.table import Row, better_than_safari, rivals
from safari.report.statistics import Estimate

GIVES = (
    "minus SAFARI", "95 % interval", "default", "equal gradients", "accuracy", "last round",
    "missing classes", "worst class",
)  # fmt: skip
"""After the score, whose name is that of the setting's metric."""
COSTS = ("client gradients", "server steps", "down", "up", "keeps", "needs", "passes ceiling")


def tables_of(setting: Setting, rows: Sequence[Row]) -> list[Table]:
    """Two tables: what the methods give, and what they cost."""
    return [_table(f"{setting.key}: {setting.title}; in %", gives(setting), rows, gives_of),
            _table(f"{setting.key}: costs of a run, tuned", COSTS, rows, costs_of)]  # fmt: skip


def _table(title, columns, rows, texts) -> Table:  # type: ignore[no-untyped-def]
    table = Table(title=title, title_justify="left")
    table.add_column("method", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.method, *texts(row), style="dim" if row.reference else None)
    return table


def gives(setting: Setting) -> tuple[str, ...]:
    """The columns of what the methods give."""
    return (setting.scored.title, *GIVES)


def gives_of(row: Row) -> tuple[str, ...]:
    return (
        shown(row.score),
        "" if row.difference is None else f"{row.difference.mean:+.1f}",
        interval(row.difference),
        shown(row.default),
        shown(row.gradients),
        mean(row.accuracy),
        mean(row.last),
        mean(row.missing),
        mean(row.worst),
    )


def costs_of(row: Row) -> tuple[str, ...]:
    return (
        "" if row.client_gradients is None else f"{row.client_gradients:,.0f} k",
        *(("" if number is None else f"{number:,.0f}") for number in (row.server_steps, row.down, row.up)),
        keeps(row),
        needs(row),
        {True: "yes", False: "no", None: "?"}[row.passes_ceiling],
    )


def shown(found: Estimate | None) -> str:
    if found is None:
        return "diverged"
    return f"{found.mean:.1f}" + (f" ± {found.deviation:.1f}" if found.count > 1 else "")


def mean(found: Estimate | None) -> str:
    return "" if found is None else f"{found.mean:.1f}"


def interval(found: Estimate | None) -> str:
    return "" if found is None or found.count < 2 else f"{found.low:+.1f} to {found.high:+.1f}"


def keeps(row: Row) -> str:
    """Models kept between rounds."""
    if row.about is None:
        return "?"
    facts = (
        (row.about.server_memory, "server"),
        (row.about.for_each_client, "server, for each client"),
        (row.about.client_memory, "each client"),
    )
    return "; ".join(f"{number:g} {where}" for number, where in facts if number)


def needs(row: Row) -> str:
    """What the method must have or know."""
    if row.reference:
        return "everyone" if row.method.startswith("everyone") else "all samples in one place"
    if row.about is None:
        return "?"
    facts = (
        (row.about.server_set, "server set"),
        (row.about.label_counts, "label counts"),
        (row.about.rates, "participation rates"),
        (row.about.raw_samples, "raw samples leave"),
    )
    return ", ".join(name for fact, name in facts if fact)


def findings(rows: Sequence[Row]) -> str:
    """Who beats SAFARI, in a sentence."""
    better = better_than_safari(rows)
    if not any(row.difference is not None for row in rows):
        return "SAFARI takes no part, or has not finished: there are no differences."
    if not better:
        return "No method is better than SAFARI by an interval above zero."
    named = ", ".join(f"{row.method} ({row.difference.mean:+.1f}, {interval(row.difference)})"
                      for row in better if row.difference)  # fmt: skip
    return f"Better than SAFARI by an interval above zero: {named}."


def where_safari_loses(rows: Sequence[Row]) -> list[str]:
    """A paragraph for a setting in which SAFARI is beaten, at equal rounds or at equal gradients."""
    first = next(iter(rivals(rows)), None)
    if first is None or first.method == SAFARI or not any(row.method == SAFARI for row in rows):
        return []
    equal = [row for row in rivals(rows) if (found := row.gradients_difference) and found.low > 0]
    at_equal = ", ".join(row.method for row in equal) or "nobody by an interval above zero"
    return [
        f"SAFARI is not first here: {first.method} is. At equal client gradients, better are: {at_equal}."
    ]
