"""The streams part of `make machine`: stdout or stderr is closed, full, left early, or knows ASCII only.

A process each, since the streams of a process are set up once: two seconds of imports for every trial.
Commands that also train meet a few of the kinds, which together go through all of `cli/streams.py`.
Needs MNIST for `reproduce`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine.rooms import ONNX
from machine.trials import Trials, dots, wrong

KINDS = {
    "stdout closed": ["sh", "-c", '"$@" >&-', "sh"],
    "stdout full": ["sh", "-c", '"$@" >/dev/full', "sh"],
    "stdout left early": ["bash", "-c", 'set -o pipefail; "$@" | true', "bash"],
    "stderr closed": ["sh", "-c", '"$@" 2>&-', "sh"],
    "stderr full": ["sh", "-c", '"$@" 2>/dev/full', "sh"],
    "ASCII only": [],
}
"""What a command is started by."""
ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
OUT_IS_LOST = ("stdout full", "stdout closed")
FEW = ("stdout full", "stderr closed", "ASCII only")
COMMANDS = {
    "--help": KINDS,
    "--version": KINDS,
    "run run.toml --out new": FEW,
    "run --resume half-a-run": KINDS,
    "sweep sweep.toml --out new": FEW,
    "sweep sweep.toml --dry-run": KINDS,
    "sweep --resume half-a-sweep": FEW,
    "compare run.toml --seeds 1 --out new": FEW,
    "compare run --out new": KINDS,
    "league league.toml --out new": FEW,
    "league league.toml --dry-run": KINDS,
    "league --resume league": KINDS,
    "merge sweep --out new": KINDS,
    "report run": KINDS,
    "migrate run.toml": KINDS,
    "algorithms": KINDS,
    "algorithms scaffold": FEW,
    "algorithms --json": FEW,
    "evaluate run": KINDS,
    "evaluate run --json": FEW,
    "predict run samples.npz": KINDS,
    "predict run samples.npz --out new.csv": FEW,
    "export run new.onnx": FEW,
    "advise run.toml --seconds 1 --out new": FEW,
    "reproduce mnist --dry-run --out new": FEW,
    "data list": KINDS,
    "theory convergence run": KINDS,
    "theory generalization": FEW,
    "theory counterexample --rounds 2000": FEW,
    "theory impossibility --samples 50": FEW,
    "flower deploy run.toml --out new": KINDS,
}
"""Carried out in a folder with the directories of tests/fuzz and `samples.npz`."""


def streams(trials: Trials, ready: Path, chosen: dict[str, Iterable[str]]) -> None:
    """Commands of a process each, whose stdout is closed, full, left early, or knows ASCII only."""
    every = [
        (kind, command)
        for command, kinds in chosen.items()
        for kind in kinds
        if ONNX or not command.startswith("export")
    ]

    def in_a_copy(one: tuple[str, str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ready, Path(folder) / "ready")
            return stream(*one, Path(folder) / "ready")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one, problem in zip(every, pool.map(in_a_copy, every), strict=True):
            trials.note(*one, problem)


def stream(kind: str, command: str, folder: Path) -> str:
    """What is wrong with how a command ended that its streams said no to."""
    code, stderr = said(kind, command, folder)
    if dots(folder):
        return f"leaves {dots(folder)}"
    if kind in OUT_IS_LOST:
        return wrong((code, stderr, ""), "stdout")
    early = kind == "stdout left early" and code == 1
    if "Traceback" in stderr or not (code == 0 or early):
        return f"exit code {code}: {stderr[-300:]!r}"
    return wrong((code, stderr, ""), "stdout") if early else ""


def said(kind: str, command: str, folder: Path) -> tuple[int, str]:
    """The exit code of a command whose streams are of this kind, and what it said on stderr."""
    safari = [*KINDS[kind], sys.executable, "-m", "safari", *command.split()]
    environment = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    environment |= ASCII if kind == "ASCII only" else {}
    done = subprocess.run(safari, cwd=folder, env=environment, capture_output=True, check=False)
    return done.returncode, done.stderr.decode(errors="replace")
