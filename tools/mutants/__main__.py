"""The code made wrong on purpose, one place at a time: python tools/mutants [NAME]... [--jobs 2]

Each mutant is a patch (a text of a file, another text in its place) and the tests that must then fail. A
mutant whose text does not stand in its file exactly once is an error: whoever changes the code changes the
mutant. Everything happens in copies; the checkout stays as it is. What no test notices is named in the end.

    python tools/mutants                   all of them; benchmarks/results/mutants.json keeps the verdicts
    python tools/mutants scaffold markov   those whose names hold one of the words
    python tools/mutants --resume          only those without a verdict: go on after an interruption
    python tools/mutants --check           only whether every text still stands in its file
    python tools/mutants --sound           only whether the tests that are named pass without a mutant
"""

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
COPIED = ("src", "tests", "examples", "pyproject.toml")
HEAVY = (
    "jax", "jax.numpy", "equinox", "optax", "numpy", "polars", "scipy.stats", "scipy.special",
    "sklearn.datasets", "sklearn.metrics", "pydantic", "typer.testing", "rich.console",
    "safetensors.numpy", "flwr.app", "flwr.serverapp.strategy", "jinja2", "plotly.graph_objects", "psutil",
    "beartype", "beartype.claw", "beartype.door", "beartype.vale", "jaxtyping", "hypothesis.strategies",
    "hypothesis.extra.numpy", "_hypothesis_pytestplugin", "anyio.pytest_plugin", "xdist.plugin",
    "xdist.looponfail", "dp_accounting.rdp",
)  # fmt: skip
SECONDS = 900
NICE = 5
SAID = "said.txt"
COLLECT = " -k nothing_is_called_this"
"""Modules are compiled once, for all copies."""
QUIET = "ignore::pytest.PytestAssertRewriteWarning"
"""Plugins of pytest are loaded before it is."""
PASSED, FAILED, INTERRUPTED, WRONG_PLACE = 0, 1, 2, 99


@dataclass(frozen=True)
class Mutant:
    """One wrong place: `old` becomes `new` in `file`; one of `tests` (words for pytest) must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    survives: str = ""
    """Why no test can notice it, for one that changes nothing anybody could see."""

    def problem(self, root: Path) -> str | None:
        """Why the patch cannot be made; None if it can."""
        file = root / self.file
        if not file.is_file():
            return f"{self.file} is not there"
        times = file.read_text(encoding="utf-8").count(self.old)
        return None if times == 1 else f"its text stands {times} times in {self.file}"

    @property
    def digest(self) -> str:
        """What a verdict is about: it lapses when the patch or the tests change."""
        text = "\0".join((self.file, self.old, self.new, self.tests))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def make(self, root: Path) -> None:
        file = root / self.file
        file.write_text(file.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")


def mutants() -> list[Mutant]:
    """All of them, a file a room; `tests` stands once for those that follow it, until it is set anew."""
    found = []
    for file in sorted(HERE.glob("*.toml")):
        for group in tomllib.loads(file.read_text(encoding="utf-8"))["group"]:
            shared = {key: group[key] for key in ("file", "tests") if key in group}
            found += [Mutant(**{**shared, **one}) for one in group["mutant"]]
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"two mutants are called {twice[0]}")
    return found


def copy(root: Path, folder: Path) -> None:
    """What is compiled comes along: files keep their times, so it stays valid for all but the mutant's."""
    folder.mkdir(exist_ok=True)
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name)
        else:
            shutil.copy2(root / name, folder / name)


def load_what_is_heavy() -> None:
    """Once, for all children: JAX and its like, but nothing of safari."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault(
        "JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "safari-test-programs")
    )
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # no child looks through all of this for garbage


def start(tests: str, folder: Path) -> int:
    """A child that runs pytest in `folder` and ends with its exit code."""
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(SECONDS)
        os.nice(NICE)
        os.chdir(folder)
        sys.path.insert(0, str(folder / "src"))
        os.environ["PYTHONPATH"] = str(folder / "src")
        said = os.open(folder / SAID, os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", QUIET, *words(tests)]))
        import safari

        code = code if Path(safari.__file__).is_relative_to(folder) else WRONG_PLACE
        sys.stdout.flush()
    except BaseException as error:
        print(error, flush=True)
        os._exit(WRONG_PLACE)
    os._exit(code)


def words(tests: str) -> list[str]:
    """Words for pytest; what follows -k is one of them."""
    files, _, chosen = tests.partition(" -k ")
    return [*files.split(), *(["-k", chosen] if chosen else [])]


def by_file(chosen: list[Mutant]) -> list[str]:
    """The tests that are named, each once: a line a file."""
    wanted: dict[str, set[str]] = {}
    for mutant in chosen:
        files, _, some = mutant.tests.partition(" -k ")
        for file in files.split():
            wanted.setdefault(file, set()).add(some)
    return [
        file if "" in some else f"{file} -k {' or '.join(f'({one})' for one in sorted(some))}"
        for file, some in sorted(wanted.items())
    ]


def each(
    jobs: int, todo: list[tuple[Mutant | None, str]]
) -> Iterator[tuple[Mutant | None, str, int, str, float]]:
    """Carry out tests, with a mutant or without: what, its exit code, its last lines, its seconds."""
    flying: dict[int, tuple[Mutant | None, str, Path, float]] = {}
    waiting = list(todo)
    top = tempfile.TemporaryDirectory(prefix="safari-mutants-")
    copy(ROOT, base := Path(top.name) / "base")  # the checkout may change meanwhile
    os.waitpid(start(" ".join({test.partition(" -k ")[0] for _, test in todo}) + COLLECT, base), 0)
    while waiting or flying:
        while waiting and len(flying) < jobs:
            mutant, tests = waiting.pop(0)
            folder = Path(tempfile.mkdtemp(dir=top.name))
            copy(base, folder)
            if mutant is not None:
                mutant.make(folder)
            flying[start(tests, folder)] = (mutant, tests, folder, time.monotonic())
        child, status = os.wait()
        mutant, tests, folder, began = flying.pop(child)
        said = (folder / SAID).read_text(errors="replace").splitlines()[-3:]
        shutil.rmtree(folder, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        yield mutant, tests, code, " | ".join(said), round(time.monotonic() - began, 1)
    top.cleanup()


def verdict_of(code: int) -> str:
    """Tests that fail, cannot be collected or never end have noticed the mutant."""
    if code in (FAILED, INTERRUPTED, -signal.SIGALRM):
        return "killed"
    return "survived" if code == PASSED else "broken"


def tried(chosen: list[Mutant], everyone: list[Mutant], jobs: int) -> None:
    """Try mutants out; each verdict is written down at once."""
    for mutant, _, code, said, seconds in each(jobs, [(one, one.tests) for one in chosen]):
        assert mutant is not None
        verdict = verdict_of(code)
        hint = f" ({said})" if verdict == "broken" else ""
        print(f"{verdict:8} {seconds:6} s  {mutant.name}{hint}", flush=True)
        row = {"name": mutant.name, "file": mutant.file, "verdict": verdict, "seconds": seconds}
        write_down({**row, "digest": mutant.digest}, everyone)


def sound(chosen: list[Mutant], jobs: int) -> int:
    """Whether the tests pass in a copy without a mutant."""
    bad = 0
    for _, tests, code, said, seconds in each(jobs, [(None, one) for one in by_file(chosen)]):
        print(f"{'passed' if code == PASSED else 'FAILED':8} {seconds:6} s  {tests}", flush=True)
        if code != PASSED:
            print(said)
            bad = 1
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sound", action="store_true")
    given = parser.parse_args()
    everyone = mutants()
    chosen = [one for one in everyone if not given.names or any(name in one.name for name in given.names)]
    problems = [f"{one.name}: {problem}" for one in chosen if (problem := one.problem(ROOT))]
    if problems:
        print("\n".join(problems))
        return 1
    if given.check:
        print(f"{len(chosen)} mutants stand in their files")
        return 0
    load_what_is_heavy()
    if given.sound:
        return sound(chosen, given.jobs)
    known = {one["name"]: one for one in verdicts()} if given.resume else {}
    tried([one for one in chosen if not is_judged(one, known)], everyone, given.jobs)
    judged = {one["name"]: one["verdict"] for one in verdicts()}
    left = [one for one in chosen if judged[one.name] != "killed"]
    print(f"{len(chosen) - len(left)} of {len(chosen)} killed")
    for one in left:
        print(f"not killed: {one.name}{': ' if one.survives else ''}{one.survives}")
    return int(any(not one.survives for one in left))


def is_judged(mutant: Mutant, known: dict[str, dict[str, Any]]) -> bool:
    """Whether there is a verdict on this patch by these tests."""
    row = known.get(mutant.name, {})
    return row.get("digest") == mutant.digest and row["verdict"] != "broken"


def verdicts() -> list[dict[str, Any]]:
    """Those of this run and of earlier ones."""
    return json.loads(RESULT.read_text(encoding="utf-8"))["mutants"] if RESULT.is_file() else []


def write_down(found: dict[str, Any], everyone: list[Mutant]) -> None:
    """A verdict beside those before it, each with its commit and date, without those on what is gone."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    made = {"commit": commit, "date": date.today().isoformat()}
    known = {one["name"]: one for one in [*verdicts(), {**found, **made}]}
    rows = [known[one.name] for one in everyone if one.name in known]
    killed = sum(one["verdict"] == "killed" for one in rows)
    reasons = {one.name: one.survives for one in everyone}
    survivors = {one["name"]: reasons[one["name"]] for one in rows if one["verdict"] != "killed"}
    about = {
        "command": "python tools/mutants",
        "machine": f"{os.cpu_count()} cores, {platform.system()}",
        "mutants": len(everyone),
        "tried": len(rows),
        "killed": killed,
    }
    RESULT.write_text(json.dumps({"about": about, "survivors": survivors, "mutants": rows}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
