"""`make bench-peers`: the same jobs in safari, in other simulators and as a plain PyTorch loop.

Every contestant trains on the same samples of the same clients, with the same model from the
same start, and is scored once, after the clock has stopped. Repetitions are interleaved. Each
peer has an environment of its own under .venv-peers, made when it is first needed.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

import environments
import measuring
import table
from jobs import JOBS, Job, write_job

from safari.data.sources import load
from safari.errors import InputError

FLOOR = "floor"
ROOT = Path(__file__).parents[2]
KEPT, TRIAL = ROOT / "benchmarks" / "results" / "peers.json", Path("runs") / "peers.json"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/peers", description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", default="".join(JOBS), help="letters, one after another: %(default)s")
    parser.add_argument("--only", default=",".join(environments.CONTESTANTS), help="contestants: %(default)s")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rounds-scale", type=float, default=1.0, help="for trials: fewer rounds")
    parser.add_argument("--peer-runs", type=int, default=8, help="runs of a sweep that a peer really does")
    parser.add_argument("--limit", type=float, default=3600, help="seconds that one contestant may take")
    parser.add_argument("--out", type=Path, help=f"default: {KEPT.relative_to(ROOT)}, of trials {TRIAL}")
    given = parser.parse_args()
    given.only = [name.strip() for name in given.only.split(",")]
    for option, names, known in (
        ("--jobs", given.jobs, JOBS),
        ("--only", given.only, environments.CONTESTANTS),
    ):
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            parser.error(
                f"{option}: {', '.join(map(repr, unknown)) or 'none'}: choose from {', '.join(known)}"
            )
    if given.repetitions < 1 or given.rounds_scale <= 0 or given.peer_runs < 1:
        parser.error("--repetitions, --rounds-scale and --peer-runs must be positive")
    is_trial = given.rounds_scale != 1 or "safari" not in given.only
    given.out = given.out or (ROOT / TRIAL if is_trial else KEPT)
    try:
        measuring.read(given.out)
    except ValueError:
        parser.error(f"--out: {given.out} is no file of results")
    return given


def compare(job: Job, pythons: dict[str, Path], given: argparse.Namespace) -> dict[str, list[dict]]:
    """What each contestant measured, repetition by repetition; the floor beside them where there is one."""
    if job.has_floor:
        pythons = {**pythons, FLOOR: Path(sys.executable)}
    found: dict[str, list[dict]] = {name: [] for name in pythons}
    with tempfile.TemporaryDirectory() as folder:
        write_job(job, Path(folder))
        for repetition in range(given.repetitions):
            for name, python in pythons.items():
                one = measuring.run(name, python, Path(folder), given.limit)
                found[name].append(one)
                place = f"job {job.letter}, repetition {repetition + 1}, {name}"
                print(f"{place}: {table.brief(one)}", flush=True)
    return found


def main() -> int:
    given = arguments()
    for source in {JOBS[letter].source for letter in given.jobs}:
        load(source)  # before anything is installed
    pythons, missing = environments.make_all(given.only)
    failed = False
    for letter in given.jobs:
        job = JOBS[letter].scaled(given.rounds_scale, given.peer_runs)
        found = compare(job, pythons, given)
        floor = table.floor(found.pop(FLOOR, []), found.get("safari", []))
        entry = {**table.entry(job, found, missing), **floor}
        measuring.save(given.out, letter, entry)
        print(table.text(job, entry), flush=True)
        failed |= bool(entry["problems"])
    print(given.out)
    return int(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except InputError as error:
        sys.exit(f"benchmarks/peers: {error}")
    except KeyboardInterrupt:
        sys.exit("benchmarks/peers: stopped; the jobs that were done are kept")
