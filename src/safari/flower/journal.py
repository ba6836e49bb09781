"""The journal of a federation: a row a round, and a row for everything that befell a client.

The rounds are those of a simulated run, in the same file; reports and comparisons read both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from logging import WARNING
from typing import Any

import polars as pl
from flwr.app import MetricRecord
from flwr.common import log

from safari.engine.result import HISTORY_SCHEMA, Log
from safari.flower.fleet import Fleet
from safari.flower.rounds import Round

EVENTS_SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "client": pl.Int64,
    "name": pl.String,
    "node": pl.UInt64,
    "event": pl.String,
    "detail": pl.String,
    "norm": pl.Float64,
    "weight": pl.Float64,
    "share": pl.Float64,
}
"""`event` is asked, answered, rejected, failed, late or left; replaced: the server took a client round;
changed: a setting is not what it was before a restart. `norm` is the length of the change that a reply
asks for, `weight` what it claims to count, `share` its part of the average."""


@dataclass
class Journal:
    """What happened so far.

    `due` client rounds were drawn, `averaged` were averaged, and the last `silent` of them were not.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    due: int = 0
    averaged: int = 0
    silent: int = 0

    def note(
        self,
        round: int,
        event: str,
        fleet: Fleet,
        node: int | None = None,
        detail: str = "",
        norm: float | None = None,
        weight: float | None = None,
        share: float | None = None,
    ) -> None:
        """Something befell the client of `node`, or the round."""
        client = None if node is None else fleet.nodes.get(node)
        name = None if client is None else fleet.name(client)
        row = {"round": round, "client": client, "name": name, "node": node, "event": event, "detail": detail}
        self.events.append({**row, "norm": norm, "weight": weight, "share": share})
        if event not in ("asked", "answered"):
            who = "" if client is None else f"client {name} "
            log(WARNING, "safari: round %d: %s%s%s", round, who, event, f": {detail}" if detail else "")

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
        self.rounds.append({**dict.fromkeys(HISTORY_SCHEMA), **row})

    def count(self, averaged: bool) -> None:
        """A client round was drawn; the clients' replies were averaged, or were not."""
        self.due += 1
        self.averaged += averaged
        self.silent = 0 if averaged else self.silent + 1

    def score(self, accuracy: float | None, loss: float | None, deliver: str) -> None:
        """How good the model is after the round just noted, and the one that would be delivered."""
        row = self.rounds[-1]
        row["accuracy_round"], row["loss_round"] = accuracy, loss
        rows = reversed(self.rounds) if deliver == "synced" else ()
        delivered = next((one for one in rows if one["kind"] == "server"), row)
        row["accuracy"], row["loss"] = delivered["accuracy_round"], delivered["loss_round"]

    def scores(self) -> dict[int, MetricRecord]:
        """What was measured of the rounds so far, as Flower keeps it."""
        rows = [row for row in self.rounds if None not in (row["accuracy_round"], row["loss_round"])]
        return {
            row["round"]: MetricRecord({name: row[f"{name}_round"] for name in ("accuracy", "loss")})
            for row in rows
        }

    def history(self) -> pl.DataFrame:
        return pl.DataFrame(self.rounds, schema=HISTORY_SCHEMA)

    def happenings(self) -> pl.DataFrame:
        return pl.DataFrame(self.events, schema=EVENTS_SCHEMA)

    def log(self, never: Iterable[int]) -> Log:
        """What a simulated run would leave; no server sees what its clients' data cover."""
        return Log(
            history=self.history(),
            coverage=None,
            excluded=tuple(never),
            compile_seconds=0.0,
            train_seconds=self.seconds,
        )

    def participation(self, fleet: Fleet) -> list[dict[str, Any]]:
        """A row for every client of the fleet: how often it was asked, answered, and so on."""
        counts: dict[tuple[int, str], int] = {}
        for row in self.events:
            if row["client"] is not None:
                key = row["client"], row["event"]
                counts[key] = counts.get(key, 0) + 1
        names = ("asked", "answered", "rejected", "failed", "late", "left")
        return [
            {
                "client": client,
                "name": fleet.name(client),
                "seen": client in fleet.seen,
                **{name: counts.get((client, name), 0) for name in names},
            }
            for client in range(fleet.known)
        ]

    def never_took_part(self, fleet: Fleet) -> list[int]:
        """The clients of whose data the model has seen nothing."""
        return [row["client"] for row in self.participation(fleet) if not row["answered"]]
