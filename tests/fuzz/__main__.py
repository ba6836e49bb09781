"""python tests/fuzz: see the package's docstring."""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("SAFARI_CHECKPOINT_SECONDS", "0")
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(1, str(Path(__file__).parents[1] / "flower"))

import evidence
from fuzz import __doc__ as about
from fuzz.making import make_all
from fuzz.trials import run_trial, trials, undamaged
from fuzz.uses import USES


def carried_out(place: str, path: Path, seed: int, most: int | None) -> list[str]:
    """The trials of one kind of directory: what came of them is printed and kept; the failures."""
    began, made = time.monotonic(), {place: path}
    whole = undamaged(made)
    found: Counter[str] = Counter()
    failures = []
    chosen = trials(made, random.Random(seed), most)
    for number, trial in enumerate(chosen):
        outcome = run_trial(trial, made, whole, seed)
        found[f"{trial.use}: {outcome.partition(',')[0]}"] += 1
        if outcome.startswith("FAILED"):
            failures.append(f"{trial}: {outcome}")
            print(failures[-1], flush=True)
        if number % 100 == 99:
            print(f"{place}: {number + 1} of {len(chosen)}", file=sys.stderr, flush=True)
    for outcome, count in sorted(found.items()):
        print(f"{count:5d}  {outcome}")
    totals = {what: sum(what in failure for failure in failures) for what in ("traceback", "another result")}
    seconds = round(time.monotonic() - began)
    said = ", ".join(f"{count} {what}" for what, count in totals.items())
    print(
        f"{place}: {len(chosen)} trials, seed {seed}: {len(failures)} failed ({said}); {seconds} s",
        flush=True,
    )
    if most is None:
        count = {"trials": len(chosen), "seed": seed, "failed": len(failures), "seconds": seconds}
        outcomes = {"totals": totals, "outcomes": dict(sorted(found.items())), "failures": failures}
        evidence.keep("fuzz", f"python tests/fuzz --seed {seed}", {**count, **outcomes}, place)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, help="so many trials of each kind by chance (default: all)")
    parser.add_argument("--places", nargs="*", choices=USES, help="these kinds of directory (default: all)")
    asked = parser.parse_args()
    places = asked.places or list(USES)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        needed = {*places, *({"run"} if "runs-compared" in places else ())}
        made = make_all(Path(folder), needed)
        for place in places:
            failed += len(carried_out(place, made[place], asked.seed, asked.most))
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
