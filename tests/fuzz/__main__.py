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


def main() -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, help="so many trials by chance (default: all)")
    parser.add_argument("--places", nargs="*", choices=USES, help="these kinds of directory (default: all)")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        made = make_all(Path(folder), asked.places or USES)
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
    if asked.most is None and asked.places is None:
        count = {"trials": len(chosen), "seed": asked.seed, "failed": len(failures), "seconds": seconds}
        outcomes = {"totals": totals, "outcomes": dict(sorted(found.items())), "failures": failures}
        evidence.keep("fuzz", f"python tests/fuzz --seed {asked.seed}", {**count, **outcomes})
    return min(len(failures), 100)


if __name__ == "__main__":
    sys.exit(main())
