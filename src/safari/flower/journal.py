"""The journal of a federation: a row a round, and a row for everything that befell a client.

The rounds are those of a simulated run, in the same file; reports and comparisons read both.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from logging import WARNING
from typing import Any

import polars as pl
from flwr.app import MetricRecord
from flwr.common import log

from safari.engine.result import HISTORY_SCHEMA, Log, Measured
from safari.flower.fleet import Fleet
from safari.flower.rounds import Round

ROUNDS_SCHEMA: dict[str, Any] = {
    **HISTORY_SCHEMA,
    "time": pl.String,
    "seconds": pl.Float64,
    "checkpoint_seconds": pl.Float64,
}
"""The columns of a simulated run, then when the round ended (UTC, ISO 8601), how long it took, and how long
saving it took. Then a column for each number that clients report: `train_loss` is the `loss` that the client
strategy aggregated in training, `evaluate_loss` the one of the clients' evaluation."""

EVENTS_SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "time": pl.String,
    "client": pl.Int64,
    "name": pl.String,
    "node": pl.UInt64,
    "event": pl.String,
    "cause": pl.String,
    "detail": pl.String,
    "norm": pl.Float64,
    "weight": pl.Float64,
    "share": pl.Float64,
    "cosine": pl.Float64,
    "seconds": pl.Float64,
}
"""`event` is asked, answered, rejected, failed, late or left; replaced: the server took a client round;
changed: a setting is not what it was before a restart. `time` is when the server noted it (UTC, ISO 8601),
`cause` says in a word why a reply was rejected, `norm` is the length of the change that a reply asks for,
`weight` what it claims to count, `share` its part of the average; `cosine`, with trust = "server", that of
the angle between its change and the server's; `seconds` is how long it took to come."""

BY_CLOCK = ("time", "seconds", "checkpoint_seconds")
"""Columns of both tables that differ from run to run, whatever the seed."""

OUTCOMES = ("asked", "answered", "rejected", "failed", "late", "left")
"""What can befall a client."""

SCORES = ("accuracy", "balanced_accuracy", "macro_f1", "loss", "recall", "precision")
"""Columns of a round that are about the model that would be delivered."""


@dataclass
class Journal:
    """What happened so far.

    `due` client rounds were drawn, `averaged` were averaged, and the last `silent` of them were not.
    `classes` are the names of the classes, where the server knows them.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    due: int = 0
    averaged: int = 0
    silent: int = 0
    classes: tuple[str, ...] | None = None
    _counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    _last: dict[tuple[int, str], str] = field(default_factory=dict)
    _earlier: pl.DataFrame | None = None

    def note(
        self,
        round: int,
        event: str,
        fleet: Fleet,
        node: int | None = None,
        detail: str = "",
        cause: str | None = None,
        **numbers: float | None,
    ) -> None:
        """Something befell the client of `node`, or the round; `numbers` are columns of the events."""
        client = None if node is None else fleet.nodes.get(node)
        name = None if client is None else fleet.name(client)
        row = {"round": round, "time": now(), "client": client, "name": name, "node": node, "event": event}
        self._add({**dict.fromkeys(EVENTS_SCHEMA), **row, "cause": cause, "detail": detail, **numbers})
        if event not in ("asked", "answered"):
            who = "" if client is None else f"client {name} "
            log(WARNING, "safari: round %d: %s%s%s", round, who, event, f": {detail}" if detail else "")

    def _add(self, row: dict[str, Any]) -> None:
        self.events.append(row)
        if row["client"] is not None:
            key = row["client"], row["event"]
            self._counts[key] += 1
            self._last[key] = row["time"]

    def clients(self, round: int, event: str) -> list[int]:
        """The clients that `event` befell in the round that is being noted, in ascending order."""
        last = takewhile(lambda row: row["round"] == round, reversed(self.events))
        return sorted(row["client"] for row in last if row["event"] == event)

    def end(self, turn: Round) -> None:
        """The row of a round that is over, but for its scores."""
        row = {
            "round": turn.round,
            "kind": turn.kind,
            "q": turn.q,
            "available": turn.available,
            "cohort": self.clients(turn.round, "asked"),
            "reported": self.clients(turn.round, "answered"),
            "bytes_down": turn.down,
            "bytes_up": turn.up,
        }
        self.rounds.append({**dict.fromkeys(ROUNDS_SCHEMA), **row, "told": {}})

    def count(self, averaged: bool) -> None:
        """A client round was drawn; the clients' replies were averaged, or were not."""
        self.due += 1
        self.averaged += averaged
        self.silent = 0 if averaged else self.silent + 1

    def tell(self, kind: str, metrics: MetricRecord) -> None:
        """What the clients of the round just noted report of `kind` (train, evaluate), aggregated."""
        self.rounds[-1]["told"][kind] = dict(metrics)

    def told(self, kind: str) -> dict[int, MetricRecord]:
        """What clients reported of `kind` (train, evaluate), by round, as Flower keeps it."""
        return {row["round"]: MetricRecord(row["told"][kind]) for row in self.rounds if kind in row["told"]}

    def score(self, found: Mapping[str, Any], deliver: str) -> None:
        """How good the model is after the round just noted, and the one that would be delivered.

        `found` holds what the server measured of the first, by the columns of a history.
        """
        row = self.rounds[-1]
        row["accuracy_round"], row["loss_round"] = _known(found, "accuracy"), _known(found, "loss")
        rows = reversed(self.rounds) if deliver == "synced" else ()
        delivered = next((one for one in rows if one["kind"] == "server"), row)
        for name in SCORES:
            row[name] = _known(found, name) if delivered is row else delivered[name]

    def called(self, count: int) -> list[str]:
        """The names of so many classes; their numbers where the server does not know them."""
        known = self.classes or ()
        return list(known) if len(known) == count else [str(one) for one in range(count)]

    def recall(self, found: Mapping[str, Any]) -> dict[str, float | None]:
        """What the server measured of each class; nothing where it did not."""
        shares = _known(found, "recall")
        return dict(zip(self.called(len(shares)), shares, strict=True)) if isinstance(shares, list) else {}

    def took(self, seconds: float) -> None:
        """The round just noted is over; it took so long."""
        self.rounds[-1] |= {"time": now(), "seconds": seconds}
        self.seconds += seconds

    def scores(self) -> dict[int, MetricRecord]:
        """What was measured of the rounds so far, as Flower keeps it."""
        rows = [row for row in self.rounds if None not in (row["accuracy_round"], row["loss_round"])]
        return {
            row["round"]: MetricRecord({name: row[f"{name}_round"] for name in ("accuracy", "loss")})
            for row in rows
        }

    def restore(
        self, rounds: list[dict[str, Any]], events: list[dict[str, Any]], counts: dict[str, Any]
    ) -> None:
        """Go on from saved rows of rounds and events, and from what was counted."""
        self.rounds = [{**dict.fromkeys(ROUNDS_SCHEMA), "told": {}, **row} for row in rounds]
        self.events, self._earlier = [], None
        self._counts.clear()
        for row in events:
            self._add({**dict.fromkeys(EVENTS_SCHEMA), **row})
        for name, count in counts.items():
            setattr(self, name, count)

    def history(self) -> pl.DataFrame:
        """A row a round. Rows but for the last are final, and kept as a table."""
        if not self.rounds:
            return pl.DataFrame(schema=ROUNDS_SCHEMA)
        found, before = _table(self.rounds[-1:]), self._earlier
        done = 0 if before is None else len(before)
        fresh = _table(self.rounds[done:-1])
        self._earlier = fresh if before is None else pl.concat([before, fresh], how="diagonal", rechunk=True)
        return pl.concat([self._earlier, found], how="diagonal")

    def happenings(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        """A row an event: all, or those from `first` to before `end`."""
        return pl.DataFrame(self.events[first:end], schema=EVENTS_SCHEMA)

    def log(self, excluded: Iterable[int], measure: Callable[[], Measured] | None = None) -> Log:
        """What a simulated run would leave; no server sees what its clients' data cover."""
        return Log(
            history=self.history(),
            coverage=None,
            excluded=tuple(excluded),
            compile_seconds=0.0,
            train_seconds=self.seconds,
            measure=measure,
        )

    def participation(self, fleet: Fleet) -> list[dict[str, Any]]:
        """A row for every client of the fleet: how often it was asked, answered, and so on; when last."""
        return [
            {
                "client": client,
                "name": fleet.name(client),
                "seen": client in fleet.seen,
                **{event: self._counts[client, event] for event in OUTCOMES},
                "last_asked": self._last.get((client, "asked")),
                "last_answered": self._last.get((client, "answered")),
            }
            for client in range(fleet.known)
        ]


def now() -> str:
    """The time of day, in UTC and ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rounds as a table, with a column for each number that clients told."""
    told = [
        {
            f"{kind}_{name}": value
            for kind, metrics in row["told"].items()
            for name, value in metrics.items()
            if isinstance(value, int | float)
        }
        for row in rows
    ]
    columns = dict.fromkeys((name for one in told for name in one), pl.Float64)
    flat = [{**row, **one} for row, one in zip(rows, told, strict=True)]
    return pl.DataFrame(flat, schema={**ROUNDS_SCHEMA, **columns})


def _known(found: Mapping[str, Any], name: str) -> float | list[float | None] | None:
    """A number, or numbers by class; None where the server measured nothing."""
    value = found.get(name)
    if isinstance(HISTORY_SCHEMA[name], pl.List):
        sound = isinstance(value, list)
        return [None if math.isnan(one) else float(one) for one in value or ()] if sound else None
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None
