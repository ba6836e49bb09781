"""What clients send back: taken, or turned away with a reason; none counts too much."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message

from safari.flower.arrays import Arrays, numpy_arrays
from safari.flower.bounds import Bounds
from safari.flower.exchange import one_line


@dataclass(frozen=True)
class Turned:
    """A reply that does not count: from which node, and why; how long a change it asked for, if known."""

    node: int
    reason: str
    norm: float | None = None


@dataclass(frozen=True)
class Taken:
    """A reply that counts: the length of the change that it asks for, its weight as claimed, its share."""

    reply: Message
    norm: float
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

    def sort(self, sent: ArrayRecord, replies: Iterable[Message]) -> tuple[list[Taken], list[Turned]]:
        """The replies that count, and those that do not.

        Strategies want the same metrics from everyone: those who differ from most do not count.
        A weight above the bound is written down to it, in the reply.
        """
        sound, turned = [], []
        for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            reason = self.fault(sent, reply)
            if reason is None:
                sound.append((reply, change_of(sent, _arrays(reply))))
            else:
                turned.append(Turned(reply.metadata.src_node_id, reason))
        layouts = [_layout(reply) for reply, _ in sound]
        usual = max(layouts, key=Counter(layouts).__getitem__, default=None)
        alike = []
        for (reply, norm), layout in zip(sound, layouts, strict=True):
            if layout == usual:
                alike.append((reply, norm))
            else:
                turned.append(Turned(reply.metadata.src_node_id, "other metrics than the others'", norm))
        short, long = self._by_length(alike)
        taken = self._weighed(short)
        self.bounds.accept([one.norm for one in taken], [one.weight for one in taken], len(long))
        return taken, turned + long

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

    def _by_length(
        self, replies: list[tuple[Message, float]]
    ) -> tuple[list[tuple[Message, float]], list[Turned]]:
        short, long = [], []
        bound = self.bounds.longest([norm for _, norm in replies])
        for reply, norm in replies:
            node = reply.metadata.src_node_id
            if self.most_norm is not None and norm > self.most_norm:
                long.append(Turned(node, f"a change of length {norm:.3g}, above {self.most_norm:g}", norm))
            elif bound is not None and norm > bound[0]:
                rule = f"above {self.bounds.norm:g} times the median of {bound[1]:.3g} (norm_bound)"
                long.append(Turned(node, f"a change of length {norm:.3g}, {rule}", norm))
            else:
                short.append((reply, norm))
        return short, long

    def _weighed(self, replies: list[tuple[Message, float]]) -> list[Taken]:
        """The replies with their shares, after those that weigh too much are cut down."""
        claimed = [float(self._weight(reply)) for reply, _ in replies]
        most = self.bounds.heaviest(claimed)
        counted = claimed if most is None else [min(weight, most) for weight in claimed]
        for (reply, _), weight, cut in zip(replies, claimed, counted, strict=True):
            if cut < weight:
                _metrics(reply)[self.weight_key] = cut
        found = zip(replies, claimed, counted, strict=True)
        return [Taken(reply, norm, weight, cut / sum(counted)) for (reply, norm), weight, cut in found]

    def _weight(self, reply: Message) -> Any:
        return _metrics(reply).get(self.weight_key)

    def fault(self, sent: ArrayRecord, reply: Message) -> str | None:
        """Why a reply does not count, whatever the others are; None if it may."""
        if reply.has_error():
            return f"error: {one_line(reply.error.reason)}"
        records = list(reply.content.array_records.values())
        if len(records) != 1:
            return f"{len(records)} sets of arrays instead of one"
        return arrays_fault(sent, records[0]) or self._weight_fault(reply)

    def _weight_fault(self, reply: Message) -> str | None:
        metrics = list(reply.content.metric_records.values())
        if len(metrics) != 1:
            return f"{len(metrics)} sets of metrics instead of one"
        weight = self._weight(reply)
        if isinstance(weight, list) or weight is None or not np.isfinite(weight) or weight <= 0:
            return f"{self.weight_key} is {weight!r}, not a number above 0"
        return None


def arrays_fault(sent: ArrayRecord, got: ArrayRecord) -> str | None:
    """Why `got` cannot stand in the place of `sent`."""
    if set(got) != set(sent):
        return f"arrays {sorted(set(got) ^ set(sent))} missing or unknown"
    for name, array in got.items():
        wanted = sent[name]
        if tuple(array.shape) != tuple(wanted.shape):
            return f"{name} has shape {tuple(array.shape)} instead of {tuple(wanted.shape)}"
        if array.dtype != wanted.dtype:
            return f"{name} has type {array.dtype} instead of {wanted.dtype}"
        try:
            values = array.numpy()
        except Exception as error:  # a client's bytes may be anything
            return f"{name} cannot be read ({type(error).__name__})"
        if values.shape != tuple(wanted.shape):
            return f"{name} holds other data than it says"
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            return f"{name} is not finite"
    return None


def change_of(sent: ArrayRecord, got: ArrayRecord) -> float:
    """The length of the change from `sent` to `got`; counters, such as those of batch norms, left out."""
    square = 0.0
    for name, array in got.items():
        values = array.numpy()
        if np.issubdtype(values.dtype, np.floating):
            square += float(np.sum((values.astype(np.float64) - sent[name].numpy()) ** 2))
    return square**0.5


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
