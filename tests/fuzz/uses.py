"""What is done with a directory, and what must come of it whatever was damaged."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import polars as pl
from typer.testing import CliRunner

TIMES = ("compile_seconds", "train_seconds", "diagnostics_seconds", "seconds", "commit")
CHANGING = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"<[^<]*seconds (training|compiling)<[^\n]*",
    r"<[^<]*checksums<[^\n]*",
    r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d",
)
"""What differs between two pages of one result."""
FLOWER = find_spec("flwr") is not None
"""A fleet is tried where there can be one."""


@dataclass(frozen=True)
class Done:
    """How a use ended; `error` is what no use may end with."""

    exit_code: int
    stdout: str
    stderr: str
    error: BaseException | None = None

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def call(arguments: list[str]) -> Done:
    """A command in this process."""
    from safari.cli import app

    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "140"})
    broken = result.exception is not None and not isinstance(result.exception, SystemExit)
    return Done(result.exit_code, result.stdout, result.stderr, result.exception if broken else None)


@dataclass(frozen=True)
class Use:
    """What is done with a directory, and what it makes of it, without the times.

    `states` says whether it looks at saved states of a training.
    """

    name: str
    carry_out: Callable[[Path], Done]
    outcome: Callable[[Path, Done], object]
    states: bool = False

    def said(self, path: Path, done: Done) -> str:
        """What the user is told of the directory."""
        page = path / "report.html"
        return done.output + (page.read_text() if self.name == "report" and page.is_file() else "")


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(inner) for key, inner in value.items() if key not in TIMES}
    return value


def run_outcome(path: Path, done: object) -> object:
    summary = json.loads((path / "summary.json").read_text())
    history = pl.read_parquet(path / "metrics.parquet").to_dicts()
    return [repr(_without_times(summary)), repr(history), (path / "model.safetensors").read_bytes()]


def sweep_outcome(path: Path, done: object) -> object:
    return repr([_without_times(row) for row in pl.read_parquet(path / "results.parquet").to_dicts()])


def page_outcome(path: Path, done: object) -> object:
    page = (path / "report.html").read_text().replace(str(path), "")
    for pattern in CHANGING:
        page = re.sub(pattern, "", page)
    return page


def printed_outcome(path: Path, done: Done) -> object:
    return done.stdout


def merged_outcome(path: Path, done: object) -> object:
    return sweep_outcome(path.parent / "merged", done)


def compared_outcome(path: Path, done: object) -> object:
    return (path.parent / "compared" / "comparison.csv").read_text().replace(str(path), "")


def league_outcome(path: Path, done: object) -> object:
    table = pl.read_csv(path / "league.csv")
    return repr(table.drop([name for name in table.columns if "seconds" in name]).to_dicts())


def merged_league_outcome(path: Path, done: object) -> object:
    merged = path.parent / "merged"
    return [(merged / "chosen.json").read_text(), sweep_outcome(merged / "final", done)]


def fleet_outcome(path: Path, done: object) -> object:
    from safari.flower.journal import BY_CLOCK

    tables = [pl.read_parquet(path / f"{name}.parquet") for name in ("metrics", "events")]
    rows = [table.drop([name for name in BY_CLOCK if name in table.columns]).to_dicts() for table in tables]
    rows[1].sort(key=repr)
    return [repr(rows), (path / "model.safetensors").read_bytes()]


def command(name: str, words: Callable[[Path], list[str]], outcome: Callable, states: bool = False) -> Use:
    return Use(name, lambda path: call(words(path)), outcome, states)


def resume(name: str, outcome: Callable) -> Use:
    words = lambda path: [name, "--resume", str(path), "--quiet"]  # noqa: E731
    return command(f"{name} --resume", words, outcome, states=True)


def restart(path: Path) -> Done:
    """A server of a fleet goes on from its state, or begins it."""
    from fuzz.fleet import serve

    return serve(path, rounds=6)


def _beside(path: Path, name: str) -> str:
    return str(path.parent / name)


REPORT = command("report", lambda path: ["report", str(path)], page_outcome)
merge = partial(command, "merge", lambda path: ["merge", str(path), "--out", _beside(path, "merged")])
COMPARE = command(
    "compare", lambda path: ["compare", str(path), "--out", _beside(path, "compared")], compared_outcome
)
CERTIFY = command("convergence", lambda path: ["theory", "convergence", str(path)], printed_outcome)
EVALUATE = command("evaluate", lambda path: ["evaluate", str(path)], printed_outcome)
PREDICT = command("predict", lambda path: ["predict", str(path), str(path / "samples.npz")], printed_outcome)
RESTART = Use("fleet restarted", restart, fleet_outcome, states=True)
USES = {
    "half-a-run": (resume("run", run_outcome),),
    "run": (resume("run", run_outcome), REPORT, COMPARE, CERTIFY, EVALUATE, PREDICT),
    "half-a-sweep": (resume("sweep", sweep_outcome), merge(merged_outcome, states=True)),
    "sweep": (resume("sweep", sweep_outcome), REPORT, merge(merged_outcome, states=True)),
    "comparison": (resume("compare", sweep_outcome), REPORT),
    "runs-compared": (REPORT,),
    "half-a-league": (resume("league", league_outcome),),
    "league": (resume("league", league_outcome), REPORT, merge(merged_league_outcome, states=True)),
    "advice": (REPORT,),
    **({"fleet": (RESTART, REPORT)} if FLOWER else {}),
}
"""By the kind of directory."""
NOT_READ = (
    "lock", "writer", "curves.png", "comparison.csv", "table.csv", "differences.csv", "report.html",
    "league.csv",
)  # fmt: skip
ALIKE = 2
"""Of the files in a folder `finished`, one a run, so many are damaged."""
