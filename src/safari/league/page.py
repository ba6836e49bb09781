"""The report page of a league: for every setting what the methods give, what they cost, and both together."""

from collections.abc import Callable, Sequence
from typing import Any

from safari.experiment.checksums import SPEC, read_checked
from safari.league.directory import League
from safari.league.entries import POINTS
from safari.league.plan import FOLDS
from safari.league.settings import Setting
from safari.league.table import Row, rows_of
from safari.league.terminal import (
    COSTS,
    costs_of,
    findings,
    gives,
    gives_of,
    where_safari_loses,
)
from safari.report.colours import RESERVED
from safari.report.page import Entry, Page, Point, Points, Table, Text
from safari.report.statistics import Estimate

PASSES, STAYS, REFERENCE = "can pass the ceiling", "cannot", "reference, no rival"
INKS = {PASSES: RESERVED["safari"], STAYS: RESERVED["fedavg"], REFERENCE: RESERVED["server-only"]}


def league_page(found: League) -> Page:
    """All that a league has so far."""
    blocks: list[Any] = [_how(found)]
    for setting in found.settings:
        rows = rows_of(found, setting.key)
        if rows:
            blocks += _blocks(setting, rows)
    subtitle = (
        f"{len(found.results)} of {len({one.cell for one in found.planned})} runs that count are finished"
    )
    title = "League: " + ", ".join(setting.key for setting in found.settings)
    return Page(title, subtitle, tuple(blocks), read_checked(found.path / SPEC).decode(), found.made)


def _how(found: League) -> Text:
    return Text(
        "how",
        "How to read this",
        (
            f"Every method is tuned over a grid of {POINTS} points on samples that the server holds out: "
            f"under each of {found.seeds} seeds, one of {FOLDS} folds of its own set. The test set is for "
            "these tables alone. 'default' is the method as its authors have it, with the rates of the "
            "setting.",
            "All train for equally many rounds. 'equal gradients' is the score where training lasts until "
            "the clients have computed as many gradients as those of FedAvg do.",
            "Differences to SAFARI are paired: both saw the same clients in the same rounds. Each interval "
            "is a 95 % interval of its own; of thirty such intervals, one or two exclude zero by luck.",
            "The ceiling is the share of the test set whose classes clients that take part hold. A method "
            "that only weighs or remembers client models cannot pass it: nothing that it combines has seen "
            "the other classes.",
        ),
    )


def _blocks(setting: Setting, rows: Sequence[Row]) -> list[Any]:
    said = (f"{setting.title}.", findings(rows), *where_safari_loses(rows))
    key, unit = setting.key, "In per cent of the test set, differences in points."
    costs = (
        "Of one run, tuned. Gradients are of so many thousand samples, over all clients; down and up are "
        "models sent."
    )
    return [
        Text(f"{key}-findings", key, said),
        _table(f"{key}-gives", f"{key}: what the methods give", gives(setting), rows, gives_of, unit),
        *_points(setting, rows),
        _table(f"{key}-costs", f"{key}: what they cost", COSTS, rows, costs_of, costs),
    ]


def _table(
    key: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    texts: Callable[[Row], Sequence[str]],
    caption: str,
) -> Table:
    entries = tuple((Entry(row.method), *map(_entry, texts(row))) for row in rows)
    return Table(key, title, caption, ("method", *columns), entries)


def _entry(text: str) -> Entry:
    """A number sorts by itself, whatever stands behind it."""
    first = text.split(" ")[0].replace(",", "")
    try:
        value = float(first)
    except ValueError:
        return Entry(text)
    signed = text[:1] in "+-" and " to " not in text
    return Entry(text, value, shade=value if signed else None)


def _points(setting: Setting, rows: Sequence[Row]) -> list[Points]:
    drawn = [row for row in rows if row.score is not None and row.down is not None and row.up is not None]
    found = tuple(_point(row, row.score, drawn) for row in drawn if row.score is not None)
    if not found:
        return []
    caption = (
        "The delivered model, tuned, with its 95 % interval. Names stand at the references, and at methods "
        "that no other beats without sending more."
    )
    alt = f"Score against models sent. Best: {found[0].label}, {found[0].mean:.1f} %."
    title = f"{setting.key}: score against what is sent"
    x_label, y_label = "models sent to clients and back in a run", f"{setting.scored.title} in %"
    return [Points(f"{setting.key}-figure", title, caption, alt, x_label, y_label, found, INKS)]


def _point(row: Row, accuracy: Estimate, rows: Sequence[Row]) -> Point:
    sent = _sent(row)
    cheaper = [
        other.score.mean for other in rows
        if other is not row and other.score is not None and _sent(other) <= sent and not other.reference
    ]  # fmt: skip
    group = REFERENCE if row.reference else PASSES if row.passes_ceiling else STAYS
    spread = accuracy.count > 1
    low, high = (accuracy.low, accuracy.high) if spread else (accuracy.mean, accuracy.mean)
    front = row.reference or accuracy.mean > max(cheaper, default=0.0)
    return Point(row.method, group, sent, accuracy.mean, low, high, named=front)


def _sent(row: Row) -> float:
    return (row.down or 0.0) + (row.up or 0.0)
