"""What a strategy learnt, kept apart from what its operator set.

What has changed since the strategy was built is learnt: moments, momentum, counters, a clipping norm that
adapts. What has not changed is a setting. It is never restored: the operator's present value counts.
"""

import hashlib
import json
from collections.abc import Sequence
from logging import WARNING
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from flwr.common import log
from flwr.serverapp.strategy import Strategy

from safari.errors import InputError
from safari.flower.arrays import Arrays, array_record, numpy_arrays
from safari.flower.wrapped import SIZES, inner_strategies

ARRAYS = "sha256 "
SENT_ANEW = ("current_arrays",)
"""Attributes that hold the arrays that were sent: every client round sets them before they are used."""


class Learnt:
    """What `strategy`, and those it wraps, learn from now on; make it where they are newly built.

    A strategy of your own may name attributes in a tuple `transient`: these are neither saved nor missed.
    An attribute with the methods `state_dict` and `load_state_dict`, such as a privacy accountant, is saved
    by them.
    """

    def __init__(self, strategy: Strategy):
        self.strategy = strategy
        self.kinds = [type(one).__name__ for one in inner_strategies(strategy)]
        self._built = {place: mark for place, value in self._held() if (mark := _mark(value)) is not None}

    def settings(self) -> dict[str, Any]:
        """Numbers, texts and lists of the strategy as it was built, and of those it wraps."""
        found: dict[str, Any] = {}
        for place, text in self._built.items():
            depth, name = place.split("/")
            if not name.startswith("_") and not text.startswith(ARRAYS):
                found["strategy." * int(depth) + name] = json.loads(text)
        return found

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        """Arrays, and what goes into JSON: how they are held, what else changed."""
        arrays: Arrays = {}
        about: dict[str, Any] = {"strategies": self.kinds, "held": {}, "changed": {}, "states": {}}
        for place, value in self._held():
            parts = _parts(value)
            if parts is not None and _mark(value) == self._built.get(place):
                continue
            if parts is not None:
                about["held"][place] = [_kind(value), list(parts)]
                arrays |= {f"{place}/{key}": np.asarray(part, order="C") for key, part in parts.items()}
            elif _has_state(value):
                about["states"][place] = value.state_dict()
            elif place.split("/")[1] in SIZES:
                continue
            elif (text := _text(value)) is not None and text != self._built.get(place):
                about["changed"][place] = {"built": self._built.get(place), "now": text}
        return arrays, about

    def restore(self, arrays: Arrays, about: dict[str, Any], where: str) -> None:
        """Put the strategy, newly built, where the one was that saved this.

        Raises:
            InputError: if another strategy saved it, or a setting has changed without which it means nothing.
        """
        if about["strategies"] != self.kinds:
            was, now = _nested(about["strategies"]), _nested(self.kinds)
            raise InputError("clients", now, f"{where} was begun with {was}; choose another checkpoint")
        for place, (kind, keys) in about["held"].items():
            one, name = self._at(place)
            setattr(one, name, _whole(kind, {key: arrays[f"{place}/{key}"] for key in keys}))
        for place, value in about["changed"].items():
            one, name = self._at(place)
            if value["built"] == self._built.get(place):
                setattr(one, name, json.loads(value["now"]))
            else:
                log(WARNING, "safari: clients.%s begins at its new setting: what was learnt is dropped", name)
        for place, state in about["states"].items():
            one, name = self._at(place)
            _load_state(getattr(one, name, None), state, name, where)

    def missed(self) -> list[str]:
        """Attributes of strategies that are not Flower's which cannot be saved."""
        return [
            f"{type(inner_strategies(self.strategy)[int(place.split('/')[0])]).__name__}.{place.split('/')[1]}"
            for place, value in self._held()
            if not place.split("/")[1].startswith("_")
            and _parts(value) is None
            and not (_has_state(value) or callable(value) or _text(value) is not None)
        ]

    def _at(self, place: str) -> tuple[Any, str]:
        depth, name = place.split("/")
        return inner_strategies(self.strategy)[int(depth)], name

    def _held(self) -> list[tuple[str, Any]]:
        return [
            (f"{depth}/{name}", value)
            for depth, one in enumerate(inner_strategies(self.strategy))
            for name, value in vars(one).items()
            if name != "strategy" and name not in getattr(one, "transient", ())
            if not (name in SENT_ANEW and type(one).__module__.startswith("flwr."))
        ]


def _parts(value: Any) -> Arrays | None:
    """The arrays of a value, if it holds nothing else."""
    if isinstance(value, np.ndarray):
        found: Arrays = {"": value}
    elif isinstance(value, ArrayRecord):
        found = numpy_arrays(value)
    elif isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        found = value
    elif isinstance(value, list | tuple) and value:
        found = {str(number): part for number, part in enumerate(value)}
    else:
        return None
    sound = all(isinstance(part, np.ndarray) and part.dtype.kind in "fiub" for part in found.values())
    return found if sound else None


def _kind(value: Any) -> str:
    return next(
        kind.__name__ for kind in (np.ndarray, ArrayRecord, dict, list, tuple) if isinstance(value, kind)
    )


def _whole(kind: str, parts: Arrays) -> Any:
    """What `_parts` took apart."""
    made = {
        "ndarray": lambda: parts[""],
        "ArrayRecord": lambda: array_record(parts),
        "dict": lambda: parts,
        "list": lambda: list(parts.values()),
        "tuple": lambda: tuple(parts.values()),
    }
    return made[kind]()


def _nested(kinds: Sequence[str]) -> str:
    """What wraps what: `Privacy(FedAvg)`."""
    return "(".join(kinds) + ")" * (len(kinds) - 1)


def _text(value: Any) -> str | None:
    """A plain value as JSON; None if JSON would not give it back."""
    value = value.item() if isinstance(value, np.generic) else value
    try:
        text = json.dumps(value)
        return text if json.loads(text) == value else None
    except (TypeError, ValueError):
        return None


def _mark(value: Any) -> str | None:
    """What tells a value from another: JSON, or the checksum of its arrays."""
    parts = _parts(value)
    if parts is None:
        return _text(value)
    found = hashlib.sha256()
    for key, part in parts.items():
        found.update(f"{key} {part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes())
    return ARRAYS + found.hexdigest()


def _has_state(value: Any) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _load_state(holder: Any, state: Any, name: str, where: str) -> None:
    """Into an accountant, say. Its budget is the operator's to change; the rest of its settings is not."""
    if not _has_state(holder):
        hint = f"{where} was begun with one; build it, or choose another checkpoint"
        raise InputError(f"clients.{name}", "None", hint)
    now = holder.state_dict()
    try:
        if isinstance(state.get("config"), dict) and "max_epsilon" in now.get("config", {}):
            state = {**state, "config": {**state["config"], "max_epsilon": now["config"]["max_epsilon"]}}
        holder.load_state_dict(state)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        hint = f"{where} holds a state that does not fit it ({error}); choose another checkpoint"
        raise InputError(f"clients.{name}", type(holder).__name__, hint) from None
