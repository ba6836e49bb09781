"""What clients send back: taken, or turned away with a reason."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message

from safari.flower.arrays import Arrays, numpy_arrays
from safari.flower.exchange import one_line


@dataclass(frozen=True)
class Turned:
    """A reply that does not count: from which node, and why."""

    node: int
    reason: str


@dataclass(frozen=True)
class Gate:
    """What a reply must be to count. `most_norm` bounds the length of the change it asks for."""

    weight_key: str = "num-examples"
    most_norm: float | None = None

    def sort(self, sent: ArrayRecord, replies: Iterable[Message]) -> tuple[list[Message], list[Turned]]:
        """The replies that count, and those that do not.

        Strategies want the same metrics from everyone: those who differ from most do not count.
        """
        sound, turned = [], []
        for reply in sorted(replies, key=lambda reply: reply.metadata.src_node_id):
            reason = self.fault(sent, reply)
            if reason is None:
                sound.append(reply)
            else:
                turned.append(Turned(reply.metadata.src_node_id, reason))
        layouts = [_layout(reply) for reply in sound]
        usual = max(layouts, key=Counter(layouts).__getitem__, default=None)
        taken = [reply for reply, layout in zip(sound, layouts, strict=True) if layout == usual]
        odd = [reply for reply, layout in zip(sound, layouts, strict=True) if layout != usual]
        turned += [Turned(reply.metadata.src_node_id, "other metrics than the others'") for reply in odd]
        return taken, turned

    def average(self, replies: list[Message]) -> Arrays:
        """The plain weighted average of the arrays of replies that count."""
        weights = [float(self._weight(reply)) for reply in replies]
        arrays = [numpy_arrays(next(iter(reply.content.array_records.values()))) for reply in replies]
        return {
            name: np.average([one[name] for one in arrays], axis=0, weights=weights).astype(
                arrays[0][name].dtype
            )
            for name in arrays[0]
        }

    def _weight(self, reply: Message) -> Any:
        return next(iter(reply.content.metric_records.values())).get(self.weight_key)

    def fault(self, sent: ArrayRecord, reply: Message) -> str | None:
        """Why a reply does not count; None if it does."""
        if reply.has_error():
            return f"error: {one_line(reply.error.reason)}"
        records = list(reply.content.array_records.values())
        if len(records) != 1:
            return f"{len(records)} sets of arrays instead of one"
        return self.arrays_fault(sent, records[0]) or self._weight_fault(reply)

    def arrays_fault(self, sent: ArrayRecord, got: ArrayRecord) -> str | None:
        """Why `got` cannot stand in the place of `sent`."""
        if set(got) != set(sent):
            return f"arrays {sorted(set(got) ^ set(sent))} missing or unknown"
        square = 0.0
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
            if self.most_norm is not None:
                square += float(np.sum((values.astype(np.float64) - wanted.numpy()) ** 2))
        if self.most_norm is not None and square**0.5 > self.most_norm:
            return f"a change of length {square**0.5:.3g}, above {self.most_norm:g}"
        return None

    def _weight_fault(self, reply: Message) -> str | None:
        metrics = list(reply.content.metric_records.values())
        if len(metrics) != 1:
            return f"{len(metrics)} sets of metrics instead of one"
        weight = self._weight(reply)
        if isinstance(weight, list) or weight is None or not np.isfinite(weight) or weight <= 0:
            return f"{self.weight_key} is {weight!r}, not a number above 0"
        return None


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
