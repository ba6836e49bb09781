"""What the operator of a fleet set, as one flat table, and what of it has changed since a checkpoint."""

import json
from typing import Any

from safari.algorithms import AdaptiveQ


def flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"algorithm.q": 0.8, ...}` of nested tables."""
    found: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def plain_attributes(thing: Any) -> dict[str, Any]:
    """The numbers and texts that an object holds; nothing of a function."""
    held = getattr(thing, "__dict__", {})
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, bool | int | float | str) and not name.startswith("_")
    }


def plain_q(q: float | AdaptiveQ) -> float | str:
    """A number, or the rule that finds one."""
    return "adaptive" if isinstance(q, AdaptiveQ) else float(q)


def toml_tables(options: dict[str, Any]) -> dict[str, Any]:
    """Nested tables of a flat one, without what is not set, as TOML holds them."""
    tables: dict[str, Any] = {}
    for key, value in options.items():
        if value is None:
            continue
        *path, name = key.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[name] = value
    return tables


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is not as it was: `algorithm.q was 0.8 and is 0.5`. More rounds change nothing before them."""
    plain = json.loads(json.dumps(now))
    return [
        f"{key} was {_shown(before, key)} and is {_shown(plain, key)}"
        for key in sorted({*before, *plain})
        if before.get(key) != plain.get(key) and key != "train.rounds"
    ]


def _shown(options: dict[str, Any], key: str) -> str:
    value = options.get(key)
    return "not set" if value is None else json.dumps(value)
