"""How far safari's rounds are from the same rounds by hand: python benchmarks/regress [--keep] [--waste W]

Prints each gauge's ratio, the best of a few, beside its limit: a fifth above the median that was kept.
Fails where one is beyond. With --keep new medians are kept. With --waste clients take W times the
steps they should: what must fail, if the gauges are worth anything.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from gauges import GAUGES

from safari.experiment.versions import provenance

KEPT = Path(__file__).parent / "kept.json"
ALLOWED, SAMPLES, REPEATS = 1.2, 25, 3
MOST_REPEATS, CERTAIN = 9, 1.25
"""What looks slower is measured on: a busy machine makes it look so for a while."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/regress", description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--waste", type=float, default=1.0)
    given = parser.parse_args()
    kept = json.loads(KEPT.read_text())["ratios"] if KEPT.exists() and not given.keep else {}
    ratios, slower = {}, []
    for name, make in GAUGES.items():
        gauge, limit = make(given.waste), ALLOWED * kept.get(name, float("inf"))
        found = [gauge.ratio(SAMPLES) for _ in range(MOST_REPEATS if given.keep else REPEATS)]
        while limit < min(found) < CERTAIN * limit and len(found) < MOST_REPEATS:
            found.append(gauge.ratio(SAMPLES))
        ratios[name] = statistics.median(found) if given.keep else min(found)
        slower += [name] if ratios[name] > limit else []
        listed = " ".join(f"{ratio:.3f}" for ratio in found)
        print(f"{name:8s} {ratios[name]:.3f} (of {listed}), limit {limit:.3f}", flush=True)
    if given.keep:
        made = {**provenance(), "command": "python benchmarks/regress --keep"}
        KEPT.write_text(json.dumps({"ratios": ratios, "made": made}, indent=2) + "\n")
        return 0
    if slower:
        print(f"slower than it was: {', '.join(slower)}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
