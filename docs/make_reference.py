"""Writes docs/spec.md from the nouns' own signatures: python docs/make_reference.py"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safari.algorithms import CLIENT_ALGORITHMS, AdaptiveQ, Safari, ServerSGD
from safari.experiment.schema import REQUIRED, Key, describe, keys_of
from safari.experiment.spec import ALGORITHMS, _federation_of_flat_keys
from safari.experiment.sweep.cells import SWEEP_KEYS
from safari.models import MODELS
from safari.participation import AVAILABILITIES, Participation
from safari.verb import train

HEAD = """# Spec reference

Written by `python docs/make_reference.py` from the signatures of the code. What the keys mean
is said in the docstrings of the same names (`help(safari.federate)`, ...) and in the
[guide](guide.md).
"""


def named(default: str, choices: Any) -> dict[str, Key]:
    return {"name": Key(tuple(choices), default)}


def tables() -> Iterator[tuple[str, str, dict[str, Key]]]:
    yield "data", "who holds what", keys_of(_federation_of_flat_keys)
    yield "participation", "who takes part", keys_of(Participation, ("availability",))
    for name, pattern in AVAILABILITIES.items():
        yield "participation.availability", f'with `name = "{name}"`', keys_of(pattern)
    for name, model in MODELS.items():
        yield "model", f'with `name = "{name}"`', keys_of(model)
    algorithm = {**named("safari", ALGORITHMS), **keys_of(Safari, ("clients", "server"))}
    yield "algorithm", "what trains", algorithm
    yield "algorithm.q", 'instead of a number; `q = "adaptive"` for the defaults', keys_of(AdaptiveQ)
    for name, clients in CLIENT_ALGORITHMS.items():
        yield "algorithm.clients", f'with `name = "{name}"`', keys_of(clients)
    yield "algorithm.server", "how the server trains", keys_of(ServerSGD)
    parts = ("federation", "algorithm", "model", "participation", "on_progress")
    yield "train", "how long", keys_of(train, parts)
    yield (
        "sweep",
        "for `safari sweep`: `grid` holds the keys of the other tables, each with a list",
        SWEEP_KEYS,
    )


def text(key: Key) -> str:
    if isinstance(key.hint, tuple):
        return ", ".join(f"`{choice}`" for choice in key.hint)
    return describe(key.hint).replace("|", "\\|")


def default(table: str, name: str, key: Key) -> str:
    if name == "seed" and table != "train":
        return "`train.seed`"
    if key.default is REQUIRED:
        return "must be given"
    if key.default is None:
        return "not set"
    value = list(key.default) if isinstance(key.default, tuple) else key.default
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def reference() -> str:
    parts = [HEAD]
    for table, about, keys in tables():
        parts.append(f"\n## [{table}], {about}\n")
        if not keys:
            parts.append("\nNo keys.\n")
            continue
        rows = [f"| `{name}` | {text(key)} | {default(table, name, key)} |" for name, key in keys.items()]
        parts.append("\n| key | may hold | default |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(reference())
