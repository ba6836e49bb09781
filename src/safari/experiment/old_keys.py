"""Keys that stand in another table than one may think, or stood there in earlier versions."""

from typing import Any

from safari.errors import InputError

MOVED = {
    "clients": "partition.clients",
    "classes_per_client": "partition.classes_per_client",
    "samples_per_client": "partition.samples_per_client",
    "size_skew": "partition.size_skew",
    "alpha": "partition.alpha",
    "server_samples": "server.samples",
    "server_disjoint": "server.disjoint",
    "server_missing_classes": "server.missing_classes",
    "server_alpha": "server.alpha",
}
"""Keys of `[data]`, and where they are now."""


def refuse_old_keys(path: str, given: dict[str, Any]) -> None:
    """Say where a key has gone."""
    for key, value in given.items():
        if key in MOVED:
            hint = f"is {path}.{MOVED[key]} now; `safari migrate FILE` rewrites specs and sweep directories"
            raise InputError(f"{path}.{key}", value, hint)


MISPLACED = {"algorithm.deliver": "train.deliver"}
"""Keys that one may look for in a table, and where they are."""


def refuse_misplaced_keys(path: str, given: dict[str, Any]) -> None:
    """Name the right key; the choice is the same for every algorithm."""
    for key, value in given.items():
        if place := MISPLACED.get(f"{path}.{key}"):
            raise InputError(
                f"{path}.{key}", value, f"write {place} instead: it is the same for all algorithms"
            )
