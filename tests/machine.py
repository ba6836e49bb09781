"""The machine says no: `make machine`, or python tests/machine.py

A full disk, a limit on files, directories that may not be read or written, streams that are closed, full, or
know ASCII only: every command must end in one line that names the path, with exit code 1 or 2, without a
traceback, and without files half written. Once there is room again, it must give the same result.

Run it as root for all of it: a full disk is a small tmpfs, and root may read everything but for a while.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fuzz

NOBODY = 65534
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
DISKS = (4, 12, 28, 60)
"""Kilobytes."""
LIMITS = (0, 100, 2000, 6000)
"""Bytes that a file may have."""


@dataclass(frozen=True)
class Command:
    """A command that writes into `out`, how to go on with it, and what it leaves there."""

    name: str
    begin: Callable[[Path, Path], list[str]]
    again: Callable[[Path], list[str]] | None
    outcome: Callable[[Path, object], object]


def commands() -> list[Command]:
    """Those that write; each into a new directory `out`, from what lies in the folder `ready`."""

    def going_on(name: str) -> Callable[[Path], list[str]]:
        return lambda out: [name, "--resume", str(out), "--quiet"]

    def table(out: Path, _: object) -> object:
        return (out / "comparison.csv").read_text()

    def files(out: Path, _: object) -> object:
        return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}

    def page(out: Path, _: object) -> object:
        return len((out / "page.html").read_text()) > 1000

    two = ["--algorithms", "fedavg,safari", "--seeds", "1", "--quiet"]
    return [
        Command(
            "run",
            lambda ready, out: ["run", str(ready / "run.toml"), "--out", str(out), "--quiet"],
            going_on("run"),
            fuzz.run_outcome,
        ),
        Command(
            "sweep",
            lambda ready, out: ["sweep", str(ready / "sweep.toml"), "--out", str(out), "--quiet"],
            going_on("sweep"),
            fuzz.sweep_outcome,
        ),
        Command(
            "compare",
            lambda ready, out: ["compare", str(ready / "run.toml"), *two, "--out", str(out)],
            going_on("compare"),
            table,
        ),
        Command(
            "compare DIRECTORY",
            lambda ready, out: ["compare", str(ready / "run"), "--out", str(out)],
            None,
            table,
        ),
        Command(
            "merge",
            lambda ready, out: ["merge", str(ready / "sweep"), "--out", str(out)],
            None,
            fuzz.sweep_outcome,
        ),
        Command(
            "report",
            lambda ready, out: ["report", str(ready / "run"), "--out", str(out / "page.html")],
            None,
            page,
        ),
        Command(
            "flower deploy",
            lambda ready, out: ["flower", "deploy", str(ready / "run.toml"), "--out", str(out)],
            None,
            files,
        ),
    ]


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
    result = fuzz.call(arguments)
    broken = result.exception is not None and not isinstance(result.exception, SystemExit)
    return result.exit_code, result.stderr, repr(result.exception) if broken else ""


def dots(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*"))


@contextmanager
def small_disk(kilobytes: int) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder on a disk of its own, and what makes room there."""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", folder]
        subprocess.run(mount, check=True)
        try:
            room = ["mount", "-o", "remount,size=100m", folder]
            yield Path(folder), lambda: subprocess.run(room, check=True) and None
        finally:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def limited_files(most: int) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A folder, while no file of this process may grow beyond so many bytes, and what ends that."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with tempfile.TemporaryDirectory() as folder:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield Path(folder), lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


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


class Machine:
    """Counts trials, and says what went wrong."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []

    def note(self, what: str, name: str, problem: str) -> None:
        self.counts[what, "failed" if problem else "well"] += 1
        if problem:
            self.failures.append(f"{what}, {name}: {problem}")
            print(self.failures[-1], flush=True)

    def no_room(self, what: str, command: Command, ready: Path, whole: object, disk: object) -> None:
        """`command` where there is too little room; then again, where there is."""
        with disk as (folder, make_room):
            out = folder / "out"
            first = called(command.begin(ready, out))
            left = dots(folder)
            make_room()
            problem = wrong(first, str(out)) if first[0] else ""
            if left:
                problem = f"leaves {left}"
            if first[0] and not problem:
                going_on = command.again is not None and out.exists()
                again = called(command.again(out) if going_on else command.begin(ready, out))
                problem = "" if again[0] == 0 else f"afterwards exit code {again[0]}: {again[1:]}"
            if not problem and command.outcome(out, None) != whole:
                problem = "another result"
            self.note(f"{what}{'' if first[0] else ' (there was room)'}", command.name, problem)

    def refused(self, what: str, arguments: list[str], path: str) -> None:
        """A command in this process as a user who may not."""
        with as_nobody():
            result = called(arguments)
        self.note(what, " ".join(arguments[:2]), wrong(result, path))


def rooms(machine: Machine, ready: Path, chosen: list[Command], disks: tuple, limits: tuple) -> None:
    for command in chosen:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            done = called(command.begin(ready, out))
            assert done[0] == 0, (command.name, done)
            whole = command.outcome(out, None)
        for size in disks if ROOT else ():
            machine.no_room("a full disk", command, ready, whole, small_disk(size))
        for most in limits:
            machine.no_room("a limit on files", command, ready, whole, limited_files(most))


def reading(ready: Path) -> dict[str, Callable[[Path], list[str]]]:
    """Commands that read a directory, and the directory that they are given."""
    return {
        "half-a-run": lambda path: ["run", "--resume", str(path)],
        "run": lambda path: ["run", "--resume", str(path)],
        "half-a-sweep": lambda path: ["sweep", "--resume", str(path)],
        "comparison": lambda path: ["compare", "--resume", str(path)],
        "run ": lambda path: ["report", str(path), "--out", str(path.parent / "page.html")],
        "sweep": lambda path: ["report", str(path), "--out", str(path.parent / "page.html")],
        "run  ": lambda path: ["compare", str(path), "--out", str(path.parent / "out")],
        "sweep ": lambda path: ["merge", str(path), "--out", str(path.parent / "out")],
        "run   ": lambda path: ["theory", "convergence", str(path)],
        "sweep  ": lambda path: ["migrate", str(path)],
        "run    ": lambda path: ["advise", str(ready / "run.toml"), "--pilot", str(path),
                                 "--out", str(path.parent / "out")],
        "run     ": lambda path: ["run", str(path / "spec.toml"), "--out", str(path.parent / "out")],
        "run      ": lambda path: ["flower", "deploy", str(path / "spec.toml"), "--out",
                                   str(path.parent / "out")],
    }  # fmt: skip


@contextmanager
def copy_of(made: Path) -> Iterator[Path]:
    """A directory in a folder that everybody may write to, both nobody's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / made.name
        shutil.copytree(made, path)
        if ROOT:
            for each in (Path(folder), *Path(folder).rglob("*")):
                os.chown(each, NOBODY, NOBODY)
        try:
            yield path
        finally:
            path.chmod(0o700)


def rights(machine: Machine, ready: Path) -> None:
    """Directories and files that may not be read, and directories that may not be written."""
    with tempfile.TemporaryDirectory() as folder:  # what is imported late may be root's alone
        for number, command in enumerate(commands()):
            called(command.begin(ready, Path(folder) / f"out{number}"))
    for place, use in reading(ready).items():
        with copy_of(ready / place.strip()) as path:
            path.chmod(0o000)
            machine.refused("a directory that may not be read", use(path), str(path))
    for place, use in reading(ready).items():
        if "spec.toml" in " ".join(use(Path())) or "migrate" in use(Path()):
            continue
        with copy_of(ready / place.strip()) as path:
            (path / "spec.toml").chmod(0o000)
            machine.refused("a spec.toml that may not be read", use(path), str(path))
    for place, use in reading(ready).items():
        arguments = use(ready / place.strip())
        if "--resume" not in arguments and "report" not in arguments:
            continue
        with copy_of(ready / place.strip()) as path:
            path.chmod(0o500)
            if "report" in arguments:
                machine.refused("a directory that may not be written", ["report", str(path)], str(path))
            else:
                machine.refused("a directory that may not be written", use(path), str(path))
    for name in ("metrics.parquet", "summary.json", "diagnostics.parquet"):
        for use in (["report"], ["theory", "convergence"], ["compare"]):
            if (name == "diagnostics.parquet") != (use[0] == "theory") or use[0] == "compare":
                continue
            with copy_of(ready / "run") as path:
                (path / name).chmod(0o000)
                machine.refused(f"a {name} that may not be read", [*use, str(path)], str(path))
    for command in commands():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o555)
            out = Path(folder) / "out"
            machine.refused("a folder that may not be written", command.begin(ready, out), str(out))
    for words in (["theory", "rates"], ["theory", "thresholds"]):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o555)
            out = f"{folder}/out"
            machine.refused("a folder that may not be written", [*words, "--out", out], out)


def streams(machine: Machine, ready: Path, chosen: dict[str, list[str]], kinds: tuple[str, ...]) -> None:
    """Commands of a process each, whose stdout is closed, full, left early, or knows ASCII only."""
    np.savez(ready / "samples.npz", x=np.zeros((3, 8, 8, 1), np.float32), y=np.arange(3))
    for name, words in chosen.items():
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(ready, Path(folder) / "ready")
                problem = stream(kind, words, Path(folder) / "ready")
                machine.note(kind, name, problem)


def stream(kind: str, words: list[str], cwd: Path) -> str:
    safari = [sys.executable, "-m", "safari", *words]
    how: dict[str, list[str]] = {
        "stdout closed": ["sh", "-c", '"$@" >&-', "sh", *safari],
        "stdout left early": ["bash", "-c", 'set -o pipefail; "$@" | true', "bash", *safari],
        "stderr closed": ["sh", "-c", '"$@" 2>&-', "sh", *safari],
        "stdout full": ["sh", "-c", '"$@" >/dev/full', "sh", *safari],
        "stderr full": ["sh", "-c", '"$@" 2>/dev/full', "sh", *safari],
        "ASCII only": safari,
    }
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"} if kind == "ASCII only" else {}
    environment = {**os.environ, **ascii_only}
    done = subprocess.run(how[kind], cwd=cwd, env=environment, capture_output=True, check=False)
    stderr = done.stderr.decode(errors="replace")
    if dots(cwd):
        return f"leaves {dots(cwd)}"
    if kind in ("stdout closed", "stdout full", "stdout left early"):
        early = kind == "stdout left early" and done.returncode in (0, 1) and "Traceback" not in stderr
        return "" if early else wrong((done.returncode, stderr, ""), "stdout")
    if done.returncode or "Traceback" in stderr:
        return f"exit code {done.returncode}: {stderr[-300:]!r}"
    return ""


KINDS = ("stdout closed", "stdout full", "stdout left early", "stderr closed", "stderr full", "ASCII only")
STREAMED = {
    "help": ["--help"],
    "version": ["--version"],
    "run": ["run", "run.toml", "--out", "new"],
    "run --resume": ["run", "--resume", "half-a-run"],
    "sweep": ["sweep", "sweep.toml", "--out", "new"],
    "sweep --dry-run": ["sweep", "sweep.toml", "--dry-run"],
    "sweep --resume": ["sweep", "--resume", "half-a-sweep"],
    "compare": ["compare", "run.toml", "--seeds", "1", "--out", "new"],
    "compare DIRECTORY": ["compare", "run", "--out", "new"],
    "merge": ["merge", "sweep", "--out", "new"],
    "report": ["report", "run"],
    "migrate": ["migrate", "run.toml"],
    "algorithms": ["algorithms"],
    "evaluate": ["evaluate", "run"],
    "predict": ["predict", "run", "samples.npz"],
    "advise": ["advise", "run.toml", "--seconds", "1", "--out", "new"],
    "data list": ["data", "list"],
    "theory convergence": ["theory", "convergence", "run"],
    "theory generalization": ["theory", "generalization"],
    "theory counterexample": ["theory", "counterexample", "--rounds", "2000"],
    "theory impossibility": ["theory", "impossibility", "--samples", "50"],
    "flower deploy": ["flower", "deploy", "run.toml", "--out", "new"],
}


def main() -> int:
    began = time.monotonic()
    machine = Machine()
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder)
        fuzz.make_all(ready)
        ready.chmod(0o755)
        rooms(machine, ready, commands(), DISKS, LIMITS)
        rights(machine, ready)
        streams(machine, ready, STREAMED, KINDS)
    for (what, how), count in sorted(machine.counts.items()):
        print(f"{count:5d}  {what}: {how}")
    total = sum(machine.counts.values())
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{total} trials: {len(machine.failures)} failed; {took}")
    return min(len(machine.failures), 100)


if __name__ == "__main__":
    sys.exit(main())
