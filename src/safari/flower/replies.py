"""What clients send back: taken, or turned away with a reason; none counts too much."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message

from safari.flower.arrays import Arrays, numpy_arrays
from safari.flower.bounds import Bounds
from safari.flower.changes import cosine_of, length_of
from safari.flower.exchange import one_line

CAUSES = (
    "error", "arrays", "shape", "type", "unreadable", "not finite", "weight", "metrics", "norm", "direction",
)  # fmt: skip
"""Why replies are rejected, in a word each."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with arrays or a reply: one of `CAUSES`, to count by, and the whole sentence."""

    cause: str
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Turned:
    """A reply that does not count: from which node, and why; its norm and cosine, if known."""

    node: int
    fault: Fault
    norm: float | None = None
    cosine: float | None = None


@dataclass(frozen=True)
class Sound:
    """A reply without a fault of its own: the length of the change that it asks for.

    `cosine` is that of this change with the server's own, where replies are judged by it.
    """

    reply: Message
    norm: float
    cosine: float | None = None

    def turned(self, cause: str, sentence: str) -> Turned:
        return Turned(self.reply.metadata.src_node_id, Fault(cause, sentence), self.norm, self.cosine)


@dataclass(frozen=True)
class Taken:
    """A reply that counts: its norm and cosine (see `Sound`), its weight as claimed, its share."""

    reply: Message
    norm: float
    cosine: float | None
    weight: float
    share: float


@dataclass(frozen=True)
class Gate:
    """What a reply must be to count.

    `most_norm` bounds the length of the change that it asks for; `bounds` do so by what others asked for,
    and cap its weight.
    """

    weight_key: str = "num-examples"
    most_norm: float | None = None
    bounds: Bounds = field(default_factory=lambda: Bounds(norm=None, weight=None))

    def sort(
        self, sent: ArrayRecord, replies: Iterable[Message], own: Arrays | None = None
    ) -> tuple[list[Taken], list[Turned]]:
        """The replies that count, and those that do not.

        Strategies want the same metrics from everyone: those who differ from most do not count.
        With `own`, the change that the server's own step makes, a change that goes against it does not count.
        A weight above the bound is written down to it, in the reply.
        """
        sound: list[Sound] = []
        turned: list[Turned] = []
        for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            fault = self.fault(sent, reply)
            if fault is None:
                got = _arrays(reply)
                cosine = None if own is None else cosine_of(sent, got, own)
                sound.append(Sound(reply, length_of(sent, got), cosine))
            else:
                turned.append(Turned(reply.metadata.src_node_id, fault))
        layouts = [_layout(one.reply) for one in sound]
        usual = max(layouts, key=Counter(layouts).__getitem__, default=None)
        alike = []
        for one, layout in zip(sound, layouts, strict=True):
            if layout == usual:
                alike.append(one)
            else:
                turned.append(one.turned("metrics", "other metrics than the others'"))
        short, long = self._by_length(alike)
        along, against = _by_direction(short)
        taken = self._weighed(along)
        self.bounds.accept([one.norm for one in taken], [one.weight for one in taken], len(long))
        return taken, turned + long + against

    def average(self, replies: Iterable[Message]) -> Arrays:
        """The plain weighted average of the arrays of replies that count."""
        replies = list(replies)
        weights = [float(self._weight(reply)) for reply in replies]
        arrays = [numpy_arrays(_arrays(reply)) for reply in replies]
        return {
            name: np.average([one[name] for one in arrays], axis=0, weights=weights).astype(
                arrays[0][name].dtype
            )
            for name in arrays[0]
        }

    def _by_length(self, replies: list[Sound]) -> tuple[list[Sound], list[Turned]]:
        short, long = [], []
        bound = self.bounds.longest([one.norm for one in replies])
        for one in replies:
            said = f"a change of length {one.norm:.3g}"
            if self.most_norm is not None and one.norm > self.most_norm:
                long.append(one.turned("norm", f"{said}, above {self.most_norm:g}"))
            elif bound is not None and one.norm > bound[0]:
                rule = f"above {self.bounds.norm:g} times the median of {bound[1]:.3g} (norm_bound)"
                long.append(one.turned("norm", f"{said}, {rule}"))
            else:
                short.append(one)
        return short, long

    def _weighed(self, replies: list[Sound]) -> list[Taken]:
        """The replies with their shares, after those that weigh too much are cut down."""
        claimed = [float(self._weight(one.reply)) for one in replies]
        most = self.bounds.heaviest(claimed)
        counted = claimed if most is None else [min(weight, most) for weight in claimed]
        for one, weight, cut in zip(replies, claimed, counted, strict=True):
            if cut < weight:
                _metrics(one.reply)[self.weight_key] = cut
        found = zip(replies, claimed, counted, strict=True)
        return [
            Taken(one.reply, one.norm, one.cosine, weight, cut / sum(counted)) for one, weight, cut in found
        ]

    def _weight(self, reply: Message) -> Any:
        return _metrics(reply).get(self.weight_key)

    def fault(self, sent: ArrayRecord, reply: Message) -> Fault | None:
        """Why a reply does not count, whatever the others are; None if it may."""
        if reply.has_error():
            return Fault("error", f"error: {one_line(reply.error.reason)}")
        records = list(reply.content.array_records.values())
        if len(records) != 1:
            return Fault("arrays", f"{len(records)} sets of arrays instead of one")
        return arrays_fault(sent, records[0]) or self._weight_fault(reply)

    def _weight_fault(self, reply: Message) -> Fault | None:
        metrics = list(reply.content.metric_records.values())
        if len(metrics) != 1:
            return Fault("metrics", f"{len(metrics)} sets of metrics instead of one")
        weight = self._weight(reply)
        if isinstance(weight, list) or weight is None or not np.isfinite(weight) or weight <= 0:
            return Fault("weight", f"{self.weight_key} is {weight!r}, not a number above 0")
        return None


def arrays_fault(sent: ArrayRecord, got: ArrayRecord) -> Fault | None:
    """Why `got` cannot stand in the place of `sent`."""
    if set(got) != set(sent):
        return Fault("arrays", f"arrays {sorted(set(got) ^ set(sent))} missing or unknown")
    for name, array in got.items():
        wanted = sent[name]
        if tuple(array.shape) != tuple(wanted.shape):
            said = f"{name} has shape {tuple(array.shape)} instead of {tuple(wanted.shape)}"
            return Fault("shape", said)
        if array.dtype != wanted.dtype:
            return Fault("type", f"{name} has type {array.dtype} instead of {wanted.dtype}")
        try:
            values = array.numpy()
        except Exception as error:  # a client's bytes may be anything
            return Fault("unreadable", f"{name} cannot be read ({type(error).__name__})")
        if values.shape != tuple(wanted.shape):
            return Fault("unreadable", f"{name} holds other data than it says")
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            return Fault("not finite", f"{name} is not finite")
    return None


def _by_direction(replies: list[Sound]) -> tuple[list[Sound], list[Turned]]:
    along, against = [], []
    for one in replies:
        if one.cosine is None or one.cosine > 0:
            along.append(one)
        else:
            rule = f'cosine {one.cosine:.3g} (trust = "server")'
            said = f"a change that does not go the way of the server's, {rule}"
            against.append(one.turned("direction", said))
    return along, against


def _arrays(reply: Message) -> ArrayRecord:
    return next(iter(reply.content.array_records.values()))


def _metrics(reply: Message) -> Any:
    return next(iter(reply.content.metric_records.values()))


def _layout(reply: Message) -> Hashable:
    """How a reply's records are named, and its metrics."""
    return tuple(
        (
            name,
            tuple(
                sorted((key, len(value) if isinstance(value, list) else -1) for key, value in record.items())
            ),
        )
        for name, record in sorted(reply.content.metric_records.items())
    ), tuple(sorted(reply.content.array_records))
