"""A directory of each kind, none of them damaged."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fuzz.uses import USES, call

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
LEAGUE = """
[league]
methods = ["fedavg", "fedprox"]
seeds = 1
""" + SPEC.replace("rounds = 4", "rounds = 2\nevaluate_every = 2")


@contextmanager
def looking_often() -> Iterator[None]:
    """A sweep that is asked to stop stops after its first round."""
    from safari.experiment.sweep import work

    before, work.LOOK_SECONDS = work.LOOK_SECONDS, 0.001
    try:
        yield
    finally:
        work.LOOK_SECONDS = before


def interrupted(begin: Callable[[], object]) -> bool:
    """Whether it was stopped; False if it was through before."""
    from safari.experiment import Interrupted

    try:
        begin()
    except Interrupted:
        return True
    return False


def stop(*_: object) -> None:
    from safari.experiment import Interrupted

    raise Interrupted


def half_a_run(folder: Path) -> None:
    from safari.experiment import load_spec, new_run

    spec = load_spec(folder / "run.toml", ["train.diagnostics=true"])
    at_the_third_round = lambda training: stop() if training.done == 3 else None  # noqa: E731
    assert interrupted(lambda: new_run(spec, folder / "half-a-run", at_the_third_round))


def run(folder: Path) -> None:
    """With samples in it that its model can predict."""
    from safari.experiment import load_spec, new_run

    spec = load_spec(folder / "run.toml", ["train.diagnostics=true"])
    new_run(spec, folder / "run", lambda training: None)
    np.savez(folder / "run" / "samples.npz", x=np.random.default_rng(0).random((3, 8, 8, 1), np.float32))


def half_a_sweep(folder: Path) -> None:
    """Stopped at its second round; begun anew where it was through before it stopped."""
    from safari.experiment.sweep import load_sweep, new_sweep, resume_sweep

    sweep, half = load_sweep(folder / "sweep.toml"), folder / "half-a-sweep"

    def is_half_way() -> bool:
        shutil.rmtree(half, ignore_errors=True)
        stopped = interrupted(lambda: new_sweep(sweep, half, stop, {}))
        while stopped and not list(half.glob("unfinished/*/round-*2")):
            stopped = interrupted(lambda: resume_sweep(half, stop))
        return stopped

    with looking_often():
        assert any(is_half_way() for _ in range(30)), "the machine is too busy to stop a sweep half way"


def sweep(folder: Path) -> None:
    from safari.experiment.sweep import load_sweep, new_sweep

    new_sweep(load_sweep(folder / "sweep.toml"), folder / "sweep", lambda progress: None, {})


def half_a_league(folder: Path) -> None:
    """Stopped when its tuning was through, and nothing chosen yet."""
    from safari.experiment.sweep import new_sweep
    from safari.league import asked_of, begin, to_tune
    from safari.league.directory import TUNING, about_league

    half = folder / "half-a-league"
    begin(half, asked_of(str(folder / "league.toml")))
    tuning = to_tune(half)
    assert tuning is not None
    new_sweep(tuning, half / TUNING, lambda progress: None, about_league(half))


def fleet(folder: Path) -> None:
    from fuzz.fleet import serve

    done = serve(folder / "fleet", rounds=4)
    assert done.exit_code == 0, done


def by_command(*words: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        done = call([word.replace("FOLDER", str(folder)) for word in words])
        assert done.exit_code == 0, done

    return make


TWO = ("--algorithms", "fedavg,safari", "--seeds", "1", "--quiet", "--out", "FOLDER/comparison")
MAKERS: dict[str, Callable[[Path], None]] = {
    "half-a-run": half_a_run,
    "run": run,
    "half-a-sweep": half_a_sweep,
    "sweep": sweep,
    "comparison": by_command("compare", "FOLDER/run.toml", *TWO),
    "runs-compared": by_command("compare", "FOLDER/run", "--out", "FOLDER/runs-compared"),
    "half-a-league": half_a_league,
    "league": by_command("league", "FOLDER/league.toml", "--out", "FOLDER/league", "--quiet"),
    "advice": by_command("advise", "FOLDER/run.toml", "--seconds", "1", "--quiet", "--out", "FOLDER/advice"),
    "fleet": fleet,
}


def make_all(folder: Path, places: Iterable[str] = USES) -> dict[str, Path]:
    """The directories of these kinds in `folder`, in the order of `MAKERS`: some are made of others."""
    (folder / "run.toml").write_text(SPEC)
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "league.toml").write_text(LEAGUE)
    chosen = [name for name in MAKERS if name in set(places)]
    for name in chosen:
        MAKERS[name](folder)
    return {name: folder / name for name in chosen}
