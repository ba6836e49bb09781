"""What the state of a fleet's server tells of its clients: who took part, who did not, and why."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from safari.report.client_blocks import Took, took_part
from safari.report.colours import OTHERS
from safari.report.page_blocks import Bars, Curves, Entry, Line, Table
from safari.report.run_blocks import plain_line

Row = dict[str, Any]
TROUBLE = {"late": "late", "rejected": "rejected", "failed": "failed", "left": "gone before answering"}
LOGGED = {**TROUBLE, "replaced": "the server's instead", "changed": "setting changed"}
MOST_EVENTS, MOST_CLIENTS, MOST_CLASSES = 60, 200, 6


@dataclass(frozen=True)
class Fleet:
    """A fleet so far.

    Attributes:
        name: what the page is called by.
        rounds: a row a round, as a history has them.
        events: what befell clients and rounds, in order.
        clients: the names of all clients, by number.
        seen: the clients that were connected at some time.
        planned: how many rounds there are to be.
        finished: whether they are done and the model is delivered.
        seconds: how long the rounds took.
        saved: when the last round was saved, in words.
        delivered: the round whose model was delivered, or would be now.
        options: the settings of the strategy.
        damaged: what is wrong with newer states than the one that is told of.
        classes: the names of the classes, where the server knows them.
    """

    name: str
    rounds: Sequence[Row]
    events: Sequence[Row]
    clients: Sequence[str]
    seen: frozenset[int]
    planned: int
    finished: bool
    seconds: float
    saved: str
    delivered: int
    options: dict[str, Any] = field(default_factory=dict)
    damaged: Sequence[str] = ()
    classes: Sequence[str] = ()

    def count(self, event: str) -> Counter[int]:
        """How often something befell each client."""
        return Counter(row["client"] for row in self.of(event))

    def of(self, event: str) -> list[Row]:
        return [row for row in self.events if row["event"] == event]

    def called(self, client: int | None) -> str:
        """The name of a client; a node that is none has no name."""
        known = client is not None and 0 <= client < len(self.clients)
        return self.clients[client] if known and client is not None else "an unknown node"

    @property
    def recall(self) -> dict[str, float]:
        """Of the delivered model by class, the class that is recognised least first, where it is known."""
        rows = (row["recall"] for row in reversed(self.rounds) if row.get("recall"))
        known: list[float | None] = next(rows, [])
        found = {self.class_called(place, len(known)): share for place, share in enumerate(known)}
        shares = {name: share for name, share in found.items() if share is not None}
        return dict(sorted(shares.items(), key=lambda pair: pair[1]))

    def class_called(self, place: int, count: int) -> str:
        """The name of a class out of `count`; its number where the server does not know the names."""
        return self.classes[place] if len(self.classes) == count else str(place)


def recall_curves(fleet: Fleet) -> list[Curves]:
    """The recall of each class over the rounds; of many classes those that are recognised least."""
    rows = [row for row in fleet.rounds if row.get("recall")]
    worst = list(fleet.recall)[:MOST_CLASSES]
    if not worst:
        return []
    lines = []
    for place in range(len(rows[-1]["recall"])):
        name = fleet.class_called(place, len(rows[-1]["recall"]))
        if name in worst:
            shares = [row["recall"][place] for row in rows]
            values = [None if share is None else 100 * share for share in shares]
            ink = OTHERS[worst.index(name) % len(OTHERS)]
            lines.append(plain_line(name, [row["round"] for row in rows], values, ink))
    caption = "The share of each class's test samples that the delivered model recognises."
    if len(worst) < len(fleet.recall):
        caption += f" The {len(worst)} of {len(fleet.recall)} classes that it recognises least."
    alt = f"Recall by class over the rounds; {worst[0]} is recognised least."
    return [Curves("recall", "Recall by class", caption, alt, "round", "recall in %", tuple(lines))]


def who_took_part(fleet: Fleet) -> list[Bars]:
    """The clients by the rounds in which their replies counted."""
    asked, answered = fleet.count("asked"), fleet.count("answered")
    excluded = set(fleet.options.get("fleet.excluded") or ())
    clients = [
        Took(name, asked[client], answered[client], client not in excluded)
        for client, name in enumerate(fleet.clients)
    ]
    caption = "In how many rounds each client was asked, and in how many its reply came in time and counted."
    return [took_part(clients, caption)] if clients else []


def client_table(fleet: Fleet) -> list[Table]:
    """A row a client: what went wrong, and what its replies asked for. Of many, those with most trouble."""
    if not fleet.clients:
        return []
    counts = {event: fleet.count(event) for event in TROUBLE if fleet.of(event)}
    trouble = {
        client: sum(found[client] for found in counts.values()) for client in range(len(fleet.clients))
    }
    kept = sorted(trouble, key=lambda client: -trouble[client])[:MOST_CLIENTS]
    counted: dict[int, list[Row]] = {}
    for row in fleet.of("answered"):
        counted.setdefault(row["client"], []).append(row)
    timed = any(row.get("seconds") is not None for row in fleet.events)
    rows = tuple(
        (
            Entry(fleet.clients[client]),
            *(Entry(str(found[client] or ""), found[client]) for found in counts.values()),
            *_replies_of(counted.get(client, []), timed),
        )
        for client in kept
    )
    columns = ("client", *counts, "last reply", "length of change", "share of average")
    caption = (
        "Of the replies that counted: how far from the model they asked to go (median length of the change), "
        "and their mean share of the round's average."
    )
    if len(kept) < len(fleet.clients):
        caption += f" The {len(kept)} of {len(fleet.clients)} clients with the most trouble."
    return [Table("replies", "Client by client", caption, (*columns, *["reply time, s"] * timed), rows)]


def _replies_of(rows: list[Row], timed: bool) -> list[Entry]:
    last = rows[-1]["round"] if rows else None
    return [
        Entry("none") if last is None else Entry(f"round {last}", last),
        _middle(rows, "norm", "{:.3g}"),
        _middle(rows, "share", "{:.1%}"),
        *[_middle(rows, "seconds", "{:.1f}")] * timed,
    ]


def _middle(rows: list[Row], name: str, form: str) -> Entry:
    known = [row[name] for row in rows if row.get(name) is not None]
    if not known:
        return Entry("")
    found = statistics.fmean(known) if name == "share" else statistics.median(known)
    return Entry(form.format(found).replace("%", " %"), found)


def reply_curves(fleet: Fleet) -> list[Curves]:
    """The length of the changes that counted, round by round; how long replies took, where that is known."""
    wanted = (
        (
            "norm",
            "Length of the changes",
            "length",
            "How far from the model the replies that counted asked to go",
        ),
        ("seconds", "Reply times", "seconds", "How long the replies that counted took"),
    )
    found = []
    for name, title, unit, words in wanted:
        by_round: dict[int, list[float]] = {}
        for row in fleet.of("answered"):
            if row.get(name) is not None:
                by_round.setdefault(row["round"], []).append(row[name])
        if by_round:
            caption = f"{words}: the median of each round, band from the least to the greatest."
            line = Line(
                "median of the round",
                tuple(by_round),
                tuple(statistics.median(values) for values in by_round.values()),
                tuple(min(values) for values in by_round.values()),
                tuple(max(values) for values in by_round.values()),
                OTHERS[0],
            )
            found.append(Curves(name, title, caption, f"{title} over the rounds.", "round", unit, (line,)))
    return found


def event_table(fleet: Fleet) -> list[Table]:
    """What went wrong, the latest first."""
    rows = [row for row in fleet.events if row["event"] in LOGGED]
    if not rows:
        return []
    shown = tuple(
        (
            Entry(str(row["round"]), row["round"]),
            Entry("" if row["client"] is None else fleet.called(row["client"])),
            Entry(LOGGED[row["event"]]),
            Entry(row["detail"]),
        )
        for row in reversed(rows[-MOST_EVENTS:])
    )
    caption = "The latest first." if len(rows) <= MOST_EVENTS else f"The latest {MOST_EVENTS} of {len(rows)}."
    return [Table("events", "What went wrong, and why", caption, ("round", "client", "what", "why"), shown)]
