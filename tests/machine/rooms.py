"""The rooms part of `make machine`: a full disk, and a limit on files; then the same where there is room."""

import json
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fuzz import uses
from machine.trials import ROOT, Trials, called, dots, wrong

ONNX = find_spec("jax2onnx") is not None
"""`safari export` is tried where it can be."""
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

    def file(suffix: str) -> Callable[[Path, object], object]:
        return lambda out, _: Path(f"{out}{suffix}").read_bytes()

    def advice(out: Path, _: object) -> object:
        return json.loads((out / "advice.json").read_text())["verdict"]

    def page(out: Path, _: object) -> object:
        return len((out / "page.html").read_text()) > 1000

    two = ["--algorithms", "fedavg,safari", "--seeds", "1", "--quiet"]
    return [
        Command(
            "run",
            lambda ready, out: ["run", str(ready / "run.toml"), "--out", str(out), "--quiet"],
            going_on("run"),
            uses.run_outcome,
        ),
        Command(
            "sweep",
            lambda ready, out: ["sweep", str(ready / "sweep.toml"), "--out", str(out), "--quiet"],
            going_on("sweep"),
            uses.sweep_outcome,
        ),
        Command(
            "compare",
            lambda ready, out: ["compare", str(ready / "run.toml"), *two, "--out", str(out)],
            going_on("compare"),
            table,
        ),
        Command(
            "league",
            lambda ready, out: ["league", str(ready / "league.toml"), "--out", str(out), "--quiet"],
            going_on("league"),
            uses.league_outcome,
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
            uses.sweep_outcome,
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
        Command(
            "advise",
            lambda ready, out: [
                "advise",
                str(ready / "run.toml"),
                "--seconds",
                "1",
                "--quiet",
                "--out",
                str(out),
            ],
            None,
            advice,
        ),
        Command(
            "predict",
            lambda ready, out: [
                "predict",
                str(ready / "run"),
                str(ready / "samples.npz"),
                "--out",
                f"{out}.csv",
            ],
            None,
            file(".csv"),
        ),
        *(
            [
                Command(
                    "export",
                    lambda ready, out: ["export", str(ready / "run"), f"{out}.onnx"],
                    None,
                    file(".onnx"),
                )
            ]
            if ONNX
            else []
        ),
    ]


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


Disk = AbstractContextManager[tuple[Path, Callable[[], None]]]


def no_room(trials: Trials, what: str, command: Command, ready: Path, whole: object, disk: Disk) -> None:
    """`command` where there is too little room; then again, where there is.

    A folder that cannot be gone on with may be left only where the command says that it may be deleted.
    """
    with disk as (folder, make_room):
        out = folder / "out"
        first = called(command.begin(ready, out))
        left = dots(folder)
        make_room()
        problem = wrong(first, str(out)) if first[0] else ""
        if left:
            problem = f"leaves {left}"
        if first[0] and command.again is None and out.is_dir():
            problem = problem or ("" if "may be deleted" in first[1] else f"leaves {out}")
            shutil.rmtree(out)
        if first[0] and not problem:
            going_on = command.again is not None and out.exists()
            again = called(command.again(out) if going_on else command.begin(ready, out))
            problem = "" if again[0] == 0 else f"afterwards exit code {again[0]}: {again[1:]}"
        if not problem and command.outcome(out, None) != whole:
            problem = "another result"
        trials.note(f"{what}{'' if first[0] else ' (there was room)'}", command.name, problem)


def rooms(trials: Trials, ready: Path, chosen: list[Command], disks: tuple, limits: tuple) -> None:
    for command in chosen:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            done = called(command.begin(ready, out))
            assert done[0] == 0, (command.name, done)
            whole = command.outcome(out, None)
        for size in disks if ROOT else ():
            no_room(trials, "a full disk", command, ready, whole, small_disk(size))
        for most in limits:
            no_room(trials, "a limit on files", command, ready, whole, limited_files(most))
