"""What happens in a federation as metrics that Prometheus reads (the extra `safari-fl[prometheus]`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from logging import INFO
from typing import TYPE_CHECKING, Any

from flwr.common import log

from safari.errors import InputError, check

if TYPE_CHECKING:
    from safari.flower.federation import Federation

HOST = "127.0.0.1"
SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 120, 300, 600, 1800)
NORMS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
"""Bounds of the histograms' buckets."""
REPLIES = ("answered", "rejected", "failed", "late", "left")


class Exporter:
    """Metrics of a federation, in a registry of their own: call it with the federation after every round.

    Counters go on after a restart: they are made from the journal, which the checkpoint keeps.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = here = CollectorRegistry()
        self._rounds, self._events = 0, 0
        self.round = Gauge("safari_round", "The last round that is over", registry=here)
        self.planned = Gauge("safari_planned_rounds", "The rounds that there will be", registry=here)
        self.kinds = Counter("safari_rounds", "Rounds by who trained", ["kind"], registry=here)
        self.q = Gauge("safari_q", "The probability of a client round", registry=here)
        self.accuracy = Gauge("safari_accuracy", "Of the model that would be delivered", registry=here)
        self.accuracy_round = Gauge("safari_accuracy_round", "Of the model after the round", registry=here)
        self.loss = Gauge("safari_loss", "Of the model that would be delivered", registry=here)
        self.connected = Gauge("safari_clients_connected", "Clients that could be asked", registry=here)
        self.asked = Counter("safari_requests", "Requests that were sent to clients", registry=here)
        self.replies = Counter(
            "safari_replies",
            "What came of requests, and why it was rejected",
            ["outcome", "cause"],
            registry=here,
        )
        self.reply_seconds = Histogram(
            "safari_reply_seconds", "From request to reply", buckets=SECONDS, registry=here
        )
        self.norms = Histogram(
            "safari_update_norm", "Lengths of the changes that replies ask for", ["outcome"],
            buckets=NORMS, registry=here,
        )  # fmt: skip
        self.seen = Gauge(
            "safari_client_last_reply_timestamp_seconds", "When a client's reply counted last",
            ["client"], registry=here,
        )  # fmt: skip
        self.round_seconds = Histogram(
            "safari_round_seconds", "How long rounds took", ["kind"], buckets=SECONDS, registry=here
        )
        self.checkpoint_seconds = Histogram(
            "safari_checkpoint_seconds", "How long saving took", buckets=SECONDS, registry=here
        )
        self.bytes = Counter(
            "safari_bytes", "Bytes of arrays, to and from clients", ["direction"], registry=here
        )
        self.epsilon = Gauge("safari_privacy_epsilon", "Privacy spent", ["delta"], registry=here)

    def __call__(self, federation: "Federation") -> None:
        """Take in the rounds and events since the last call."""
        journal = federation.strategy.journal
        for row in journal.rounds[self._rounds :]:
            self._take_round(row)
        for row in journal.events[self._events :]:
            self._take_event(row)
        self._rounds, self._events = len(journal.rounds), len(journal.events)
        self.round.set(federation.done)
        self.planned.set(federation.rounds)
        privacy = federation.strategy.clients.privacy
        spent = privacy.spent() if privacy.wrapper is not None else None
        if spent is not None:
            self.epsilon.labels(f"{privacy.delta:g}").set(spent)

    def _take_round(self, row: dict[str, Any]) -> None:
        self.kinds.labels(row["kind"]).inc()
        self.bytes.labels("down").inc(row["bytes_down"])
        self.bytes.labels("up").inc(row["bytes_up"])
        gauges = {
            self.q: "q", self.connected: "available", self.accuracy: "accuracy",
            self.accuracy_round: "accuracy_round", self.loss: "loss",
        }  # fmt: skip
        for gauge, name in gauges.items():
            if row[name] is not None:
                gauge.set(row[name])
        timed = {
            self.round_seconds.labels(row["kind"]): "seconds",
            self.checkpoint_seconds: "checkpoint_seconds",
        }
        for histogram, name in timed.items():
            if row[name] is not None:
                histogram.observe(row[name])

    def _take_event(self, row: dict[str, Any]) -> None:
        if row["event"] == "asked":
            self.asked.inc()
        if row["event"] not in REPLIES:
            return
        self.replies.labels(row["event"], row["cause"] or "").inc()
        if row["seconds"] is not None:
            self.reply_seconds.observe(row["seconds"])
        if row["norm"] is not None:
            self.norms.labels(row["event"]).observe(row["norm"])
        if row["event"] == "answered":
            self.seen.labels(row["name"]).set(datetime.fromisoformat(row["time"]).timestamp())


def place_of(port: Any) -> tuple[str, int]:
    """Host and port of `metrics_port`: a number stands for this machine alone, `0.0.0.0:9464` for all."""
    host, _, number = str(port).rpartition(":")
    sound = number.isdecimal() and 0 < int(number) < 65536
    check(sound, "metrics_port", port, "must be a port, such as 9464, or host and port, such as 0.0.0.0:9464")
    return host or HOST, int(number)


@contextmanager
def exported(port: int | str | None) -> Iterator[Exporter | None]:
    """An exporter whose metrics can be read at `port` inside; None without a port.

    Raises:
        InputError: if the port cannot be had, or the library is missing.
    """
    if port is None:
        yield None
        return
    host, number = place_of(port)
    try:
        from prometheus_client import start_http_server
    except ImportError:
        hint = "needs a library: pip install 'safari-fl[prometheus]'"
        raise InputError("metrics_port", port, hint) from None
    exporter = Exporter()
    try:
        server, thread = start_http_server(number, host, exporter.registry)
    except OSError as error:
        raise InputError("metrics_port", port, f"cannot be opened ({error.strerror})") from None
    log(INFO, "safari: metrics for Prometheus at http://%s:%d/metrics", host, number)
    try:
        yield exporter
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
