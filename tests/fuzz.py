"""Damage files of directories that safari made, then use them: `make fuzz`, or python tests/fuzz.py --seed 1

Each trial damages one file of a run, sweep or comparison (cut, bits flipped, zeros, garbage, missing), then
resumes, reports, compares, merges or certifies. A command may do what it would have done, or refuse in one
line. A traceback, another result, or a refusal that does not say where is a failure; the exit code is their
number, 100 at the most. Writes benchmarks/results/fuzz.json, unless --most says that it is only a sample.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("SAFARI_CHECKPOINT_SECONDS", "0")

import polars as pl
from typer.testing import CliRunner, Result

import evidence

SPEC = """
[data.partition]
samples_per_client = 40
[participation]
excluded = 4
per_round = 2
[algorithm.server]
steps = 2
[train]
rounds = 4
"""
SWEEP = (
    SPEC
    + """
[sweep]
seeds = 2
[sweep.grid]
algorithm.q = [0.5, 0.9]
"""
)
TIMES = ("compile_seconds", "train_seconds", "diagnostics_seconds", "seconds", "commit")
CHANGING = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"<[^<]*seconds (training|compiling)<[^\n]*",
    r"<[^<]*checksums<[^\n]*",
)
"""What differs between two pages of one result."""


def flip_bits(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _over(content: bytes, new: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(max(1, len(content) - len(new)))
    return content[:start] + new[: len(content) - start] + content[start + len(new) :]


Damage = Callable[[bytes, random.Random], bytes | None]
DAMAGES: dict[str, Damage] = {
    "emptied": lambda content, chance: b"",
    "cut to a quarter": lambda content, chance: content[: len(content) // 4],
    "cut to a half": lambda content, chance: content[: len(content) // 2],
    "cut somewhere": lambda content, chance: content[: chance.randrange(len(content))],
    "last byte lost": lambda content, chance: content[:-1],
    "first bit": lambda content, chance: bytes([content[0] ^ 1]) + content[1:],
    "a bit": flip_bits,
    "another bit": flip_bits,
    "a third bit": flip_bits,
    "a bit of the last 64 bytes": lambda content, chance: content[:-64] + flip_bits(content[-64:], chance),
    "zeros": lambda content, chance: bytes(len(content)),
    "some zeros": lambda content, chance: _over(content, bytes(64), chance),
    "garbage": lambda content, chance: chance.randbytes(len(content)),
    "some garbage": lambda content, chance: _over(content, chance.randbytes(16), chance),
    "longer": lambda content, chance: content + chance.randbytes(16),
    "missing": lambda content, chance: None,
}


@dataclass(frozen=True)
class Use:
    """A command on a directory, and what it makes of it, without the times."""

    name: str
    arguments: Callable[[Path], list[str]]
    outcome: Callable[[Path, Result], object]

    @property
    def resumes(self) -> bool:
        """Whether it looks at saved states."""
        return self.name.endswith("--resume") or self.name == "merge"


@dataclass(frozen=True)
class Trial:
    """A file, how it was damaged, and what was done with its directory then."""

    place: str
    file: str
    damage: str
    use: str

    def __str__(self) -> str:
        return f"{self.place}/{self.file}, {self.damage}: {self.use}"


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(inner) for key, inner in value.items() if key not in TIMES}
    return value


def run_outcome(path: Path, result: Result) -> object:
    summary = json.loads((path / "summary.json").read_text())
    history = pl.read_parquet(path / "metrics.parquet").to_dicts()
    return [repr(_without_times(summary)), repr(history), (path / "model.safetensors").read_bytes()]


def sweep_outcome(path: Path, result: Result) -> object:
    return repr([_without_times(row) for row in pl.read_parquet(path / "results.parquet").to_dicts()])


def page_outcome(path: Path, result: Result) -> object:
    page = (path / "report.html").read_text().replace(str(path), "")
    for pattern in CHANGING:
        page = re.sub(pattern, "", page)
    return page


def printed_outcome(path: Path, result: Result) -> object:
    return result.stdout


def merged_outcome(path: Path, result: Result) -> object:
    return sweep_outcome(path.parent / "merged", result)


def compared_outcome(path: Path, result: Result) -> object:
    return (path.parent / "compared" / "comparison.csv").read_text().replace(str(path), "")


def resume(command: str, outcome: Callable[[Path, Result], object]) -> Use:
    return Use(f"{command} --resume", lambda path: [command, "--resume", str(path), "--quiet"], outcome)


REPORT = Use("report", lambda path: ["report", str(path)], page_outcome)
MERGE = Use("merge", lambda path: ["merge", str(path), "--out", str(path.parent / "merged")], merged_outcome)
COMPARE = Use(
    "compare", lambda path: ["compare", str(path), "--out", str(path.parent / "compared")], compared_outcome
)
CERTIFY = Use("convergence", lambda path: ["theory", "convergence", str(path)], printed_outcome)
USES = {
    "half-a-run": (resume("run", run_outcome),),
    "run": (resume("run", run_outcome), REPORT, COMPARE, CERTIFY),
    "half-a-sweep": (resume("sweep", sweep_outcome), MERGE),
    "sweep": (resume("sweep", sweep_outcome), REPORT, MERGE),
    "comparison": (resume("compare", sweep_outcome), REPORT),
    "runs-compared": (REPORT,),
}
NOT_READ = ("lock", "writer", "curves.png", "comparison.csv", "table.csv", "differences.csv", "report.html")


def call(arguments: list[str]) -> Result:
    from safari.cli import app

    return CliRunner().invoke(app, arguments, env={"COLUMNS": "140"})


@contextmanager
def looking_often() -> Iterator[None]:
    """A sweep that is asked to stop stops after its first round."""
    from safari.experiment.sweep import work

    before, work.LOOK_SECONDS = work.LOOK_SECONDS, 0.001
    try:
        yield
    finally:
        work.LOOK_SECONDS = before


def make_all(folder: Path) -> dict[str, Path]:
    """A directory of each kind, none of them damaged."""
    from safari.experiment import Interrupted, load_spec, new_run
    from safari.experiment.sweep import load_sweep, new_sweep, resume_sweep

    (folder / "run.toml").write_text(SPEC)
    (folder / "sweep.toml").write_text(SWEEP)
    made = {name: folder / name for name in USES}

    def stop_at_the_third_round(training):
        if training.done == 3:
            raise Interrupted

    def stop(progress):
        raise Interrupted

    def interrupted(begin: Callable[[], object]) -> bool:
        """Whether it was stopped; False if it was through before."""
        try:
            begin()
        except Interrupted:
            return True
        return False

    spec = load_spec(folder / "run.toml", ["train.diagnostics=true"])
    assert interrupted(lambda: new_run(spec, made["half-a-run"], stop_at_the_third_round))
    new_run(spec, made["run"], lambda training: None)
    sweep = load_sweep(folder / "sweep.toml")
    half = made["half-a-sweep"]

    def is_half_way() -> bool:
        """Begin a sweep and stop it at its second round; False if it was through before it stopped."""
        shutil.rmtree(half, ignore_errors=True)
        stopped = interrupted(lambda: new_sweep(sweep, half, stop, {}))
        while stopped and not list(half.glob("unfinished/*/round-*2")):
            stopped = interrupted(lambda: resume_sweep(half, stop))
        return stopped

    with looking_often():
        assert any(is_half_way() for _ in range(30)), "the machine is too busy to stop a sweep half way"
    new_sweep(sweep, made["sweep"], lambda progress: None, {})
    compare = ["compare", str(folder / "run.toml"), "--algorithms", "fedavg,safari", "--seeds", "1"]
    for arguments in (
        [*compare, "--quiet", "--out", str(made["comparison"])],
        ["compare", str(made["run"]), "--out", str(made["runs-compared"])],
    ):
        done = call(arguments)
        assert done.exit_code == 0, done.output
    return made


def trials(made: dict[str, Path], chance: random.Random, most: int | None) -> list[Trial]:
    """Every damage of every file in every use, or `most` of them by chance."""
    every = [
        Trial(place, str(file.relative_to(path)), damage, use.name)
        for place, path in made.items()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in NOT_READ
        for damage in DAMAGES
        for use in USES[place]
        if use.resumes or not file.parent.name.startswith("round-")
    ]
    return every if most is None else chance.sample(every, most)


def run_trial(trial: Trial, made: dict[str, Path], whole: dict[tuple[str, str], object], seed: int) -> str:
    """What came of a trial: "same", "refused", "said to be missing", or what was wrong."""
    chance = random.Random(f"{seed} {trial}")
    use = next(use for use in USES[trial.place] if use.name == trial.use)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / trial.place
        shutil.copytree(made[trial.place], path)
        file = path / trial.file
        content = DAMAGES[trial.damage](file.read_bytes(), chance)
        if content is None:
            file.unlink()
        elif content == file.read_bytes():
            return "not damaged"
        else:
            file.write_bytes(content)
        result = call(use.arguments(path))
        left = [left.name for left in Path(folder).rglob(".*")]
        if left:
            return f"FAILED: leaves {left}"
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            return f"FAILED: traceback, {result.exception!r}"
        if result.exit_code == 0:
            try:
                same = use.outcome(path, result) == whole[trial.place, trial.use]
            except Exception as error:
                return f"FAILED: what it left cannot be read, {error!r}"
            if same:
                return "same"
            missing = trial.damage == "missing" and "finished" in trial.file
            return "said to be missing" if missing else "FAILED: another result"
        lines = result.stderr.splitlines()
        if result.exit_code not in (1, 2) or not lines or not lines[-1].startswith("safari: "):
            return f"FAILED: exit code {result.exit_code}, {result.output!r}"
        if len([line for line in lines if line.startswith("safari: ")]) > 1 or str(path) not in lines[-1]:
            return f"FAILED: does not say where, {result.stderr!r}"
        return "refused"


def undamaged(made: dict[str, Path]) -> dict[tuple[str, str], object]:
    """What every use makes of a directory that is whole."""
    whole = {}
    for place, uses in USES.items():
        for use in uses:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / place
                shutil.copytree(made[place], path)
                result = call(use.arguments(path))
                assert result.exit_code == 0, (place, use.name, result.output)
                whole[place, use.name] = use.outcome(path, result)
    return whole


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, help="so many trials by chance (default: all)")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        made = make_all(Path(folder))
        whole = undamaged(made)
        found: Counter[str] = Counter()
        failures = []
        chosen = trials(made, random.Random(asked.seed), asked.most)
        for number, trial in enumerate(chosen):
            outcome = run_trial(trial, made, whole, asked.seed)
            found[f"{trial.use}: {outcome.partition(',')[0]}"] += 1
            if outcome.startswith("FAILED"):
                failures.append(f"{trial}: {outcome}")
                print(failures[-1], flush=True)
            if number % 100 == 99:
                print(f"{number + 1} of {len(chosen)}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    for outcome, count in sorted(found.items()):
        print(f"{count:5d}  {outcome}")
    totals = {what: sum(what in failure for failure in failures) for what in ("traceback", "another result")}
    for what, count in totals.items():
        print(f"{count:5d}  {what}")
    seconds = round(time.monotonic() - began)
    print(f"{len(chosen)} trials, seed {asked.seed}: {len(failures)} failed; {seconds} s")
    if asked.most is None:
        about = {"trials": len(chosen), "seed": asked.seed, "failed": len(failures), "seconds": seconds}
        outcomes = {"totals": totals, "outcomes": dict(sorted(found.items())), "failures": failures}
        evidence.keep("fuzz", f"python tests/fuzz.py --seed {asked.seed}", {**about, **outcomes})
    return min(len(failures), 100)


if __name__ == "__main__":
    sys.exit(main())
