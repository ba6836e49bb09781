"""A trial: one file of a directory is damaged in one way, then the directory is used."""

import random
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fuzz.damages import DAMAGES
from fuzz.uses import ALIKE, NOT_READ, USES, Done


@dataclass(frozen=True)
class Trial:
    """A file, how it was damaged, and what was done with its directory then."""

    place: str
    file: str
    damage: str
    use: str

    def __str__(self) -> str:
        return f"{self.place}/{self.file}, {self.damage}: {self.use}"


def trials(made: dict[str, Path], chance: random.Random, most: int | None) -> list[Trial]:
    """Every damage of every file in every use, or `most` of them by chance."""
    every = [
        Trial(place, str(file.relative_to(path)), damage, use.name)
        for place, path in made.items()
        for file in damageable(path)
        for damage in DAMAGES
        for use in USES[place]
        if use.states or not file.parent.name.startswith("round-")
    ]
    return every if most is None else chance.sample(every, most)


def damageable(path: Path) -> list[Path]:
    """The files of a directory that some use may read."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name not in NOT_READ]
    alike = {folder: sorted(folder.iterdir())[ALIKE:] for folder in path.rglob("finished")}
    return [file for file in files if file not in alike.get(file.parent, ())]


def run_trial(trial: Trial, made: dict[str, Path], whole: Mapping[tuple[str, str], object], seed: int) -> str:
    """What came of a trial: "same", "refused", "said to be damaged" or "missing", or what was wrong."""
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
        done = use.carry_out(path)
        left = [left.name for left in Path(folder).rglob(".*")]
        if left:
            return f"FAILED: leaves {left}"
        if done.error is not None:
            return f"FAILED: traceback, {done.error!r}"
        if done.exit_code:
            return refusal(done, path)
        try:
            same = use.outcome(path, done) == whole[trial.place, trial.use]
        except Exception as error:
            return f"FAILED: what it left cannot be read, {error!r}"
        if same:
            return "same"
        if f"{file} is" in use.said(path, done):
            return "said to be damaged"
        missing = trial.damage == "missing" and "finished" in trial.file
        return "said to be missing" if missing else "FAILED: another result"


def refusal(done: Done, path: Path) -> str:
    """Whether a use that did not do what it should was refused in one line that says where."""
    lines = done.stderr.splitlines()
    if done.exit_code not in (1, 2) or not lines or not lines[-1].startswith("safari: "):
        return f"FAILED: exit code {done.exit_code}, {done.output!r}"
    if len([line for line in lines if line.startswith("safari: ")]) > 1 or str(path) not in lines[-1]:
        return f"FAILED: does not say where, {done.stderr!r}"
    return "refused"


def undamaged(made: dict[str, Path]) -> dict[tuple[str, str], object]:
    """What every use makes of a directory that is whole."""
    whole = {}
    for place in made:
        for use in USES[place]:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / place
                shutil.copytree(made[place], path)
                done = use.carry_out(path)
                assert done.exit_code == 0, (place, use.name, done)
                whole[place, use.name] = use.outcome(path, done)
    return whole
