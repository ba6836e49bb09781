"""A trial: a command that the machine says no to, and what is wrong with how it ended."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fuzz.uses import call

NOBODY = 65534
NEEDED = ("half-a-run", "run", "half-a-sweep", "sweep", "comparison", "league")
"""The directories of tests/fuzz that commands are tried on."""
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def wrong(result: object, path: str) -> str:
    """What is wrong with how a command ended that was to be refused; nothing if it ended well."""
    code, stderr, error = result
    lines = [line for line in stderr.splitlines() if line.startswith("safari: ")]
    if error or "Traceback" in stderr:
        return f"traceback {error} {stderr[-300:]}"
    if code not in (1, 2):
        return f"exit code {code}: {stderr[-300:]!r}"
    if len(lines) != 1:
        return f"{len(lines)} lines: {stderr[-500:]!r}"
    return "" if path in lines[0] else f"does not name {path}: {lines[0]}"


def called(arguments: list[str]) -> tuple[int, str, str]:
    """A command in this process."""
    done = call(arguments)
    return done.exit_code, done.stderr, "" if done.error is None else repr(done.error)


def dots(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user who may do little: root may do everything."""
    if not ROOT:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


class Trials:
    """Counts trials, and says what went wrong."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.commands: set[str] = set()
        self.failures: list[str] = []
        self.facts: dict[str, object] = {}

    def note(self, what: str, name: str, problem: str) -> None:
        self.counts[what, "failed" if problem else "well"] += 1
        self.commands.add(name.split()[0])
        if problem:
            self.failures.append(f"{what}, {name}: {problem}")
            print(self.failures[-1], flush=True)

    def refused(self, what: str, arguments: list[str], path: str) -> None:
        """A command in this process as a user who may not."""
        with as_nobody():
            result = called(arguments)
        self.note(what, " ".join(arguments[:2]), wrong(result, path))


def write_samples(ready: Path) -> None:
    """A file to predict and evaluate, `samples.npz`."""
    rng = np.random.default_rng(0)
    np.savez(ready / "samples.npz", x=rng.random((3, 8, 8, 1), np.float32), y=np.arange(3))
