"""The rights part of `make machine`: what may not be read, and folders that may not be written."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from machine.rooms import ONNX, commands
from machine.trials import NOBODY, ROOT, Trials, called

Use = Callable[[Path, Path], list[str]]
READING: list[tuple[str, Use]] = [
    ("half-a-run", lambda path, ready: ["run", "--resume", str(path)]),
    ("run", lambda path, ready: ["run", "--resume", str(path)]),
    ("half-a-sweep", lambda path, ready: ["sweep", "--resume", str(path)]),
    ("comparison", lambda path, ready: ["compare", "--resume", str(path)]),
    ("league", lambda path, ready: ["league", "--resume", str(path)]),
    ("run", lambda path, ready: ["report", str(path), "--out", str(path.parent / "page.html")]),
    ("sweep", lambda path, ready: ["report", str(path), "--out", str(path.parent / "page.html")]),
    ("league", lambda path, ready: ["report", str(path), "--out", str(path.parent / "page.html")]),
    ("run", lambda path, ready: ["compare", str(path), "--out", str(path.parent / "out")]),
    ("sweep", lambda path, ready: ["merge", str(path), "--out", str(path.parent / "out")]),
    ("league", lambda path, ready: ["merge", str(path), "--out", str(path.parent / "out")]),
    ("run", lambda path, ready: ["theory", "convergence", str(path)]),
    ("sweep", lambda path, ready: ["migrate", str(path)]),
    ("run", lambda path, ready: ["evaluate", str(path)]),
    ("run", lambda path, ready: ["predict", str(path), str(ready / "samples.npz")]),
    *([("run", lambda path, ready: ["export", str(path), str(path.parent / "m.onnx")])] if ONNX else []),
    (
        "run",
        lambda path, ready: [
            "advise", str(ready / "run.toml"), "--pilot", str(path), "--out", str(path.parent / "out")
        ],
    ),
    ("run", lambda path, ready: ["run", str(path / "spec.toml"), "--out", str(path.parent / "out")]),
    (
        "run",
        lambda path, ready: ["flower", "deploy", str(path / "spec.toml"), "--out", str(path.parent / "out")],
    ),
]  # fmt: skip
"""Directories, and the commands that read them; `ready` holds what else they need."""


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


def rights(trials: Trials, ready: Path) -> None:
    """Directories and files that may not be read, and directories that may not be written."""
    with tempfile.TemporaryDirectory() as folder:  # what is imported late may be root's alone
        for number, command in enumerate(commands()):
            called(command.begin(ready, Path(folder) / f"out{number}"))
    for place, use in READING:
        with copy_of(ready / place) as path:
            path.chmod(0o000)
            trials.refused("a directory that may not be read", use(path, ready), str(path))
    for place, use in READING:
        command = use(Path(), ready)
        if "spec.toml" in command or command[0] in ("migrate", "evaluate", "predict", "export"):
            continue
        with copy_of(ready / place) as path:
            (path / "spec.toml").chmod(0o000)
            trials.refused("a spec.toml that may not be read", use(path, ready), str(path))
    for place, use in READING:
        command = use(ready / place, ready)
        if "--resume" not in command and command[0] != "report":
            continue
        with copy_of(ready / place) as path:
            path.chmod(0o500)
            words = ["report", str(path)] if command[0] == "report" else use(path, ready)
            trials.refused("a directory that may not be written", words, str(path))
    for place, use in READING:
        if use(Path(), ready)[0] not in ("evaluate", "predict", "export"):
            continue
        with copy_of(ready / place) as path:
            (path / "model.safetensors").chmod(0o000)
            trials.refused("a model.safetensors that may not be read", use(path, ready), str(path))
    with copy_of(ready / "run") as path:
        shutil.copy(ready / "samples.npz", samples := path.parent / "samples.npz")
        samples.chmod(0o000)
        for command in (["evaluate"], ["predict"]):
            words = [*command, str(path), str(samples)]
            trials.refused("samples that may not be read", words, str(samples))
    for name in ("metrics.parquet", "summary.json", "diagnostics.parquet"):
        for use in (["report"], ["theory", "convergence"], ["compare"]):
            if (name == "diagnostics.parquet") != (use[0] == "theory") or use[0] == "compare":
                continue
            with copy_of(ready / "run") as path:
                (path / name).chmod(0o000)
                trials.refused(f"a {name} that may not be read", [*use, str(path)], str(path))
    for command in commands():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o555)
            out = Path(folder) / "out"
            trials.refused("a folder that may not be written", command.begin(ready, out), str(out))
    for words in (["theory", "rates"], ["theory", "thresholds"]):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o555)
            out = f"{folder}/out"
            trials.refused("a folder that may not be written", [*words, "--out", out], out)
