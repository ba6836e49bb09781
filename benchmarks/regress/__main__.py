"""How far safari's rounds are from the same rounds by hand: python benchmarks/regress [options]

Of each gauge prints what a round asks for (operations of products, elements of everything else),
which is the same on every machine, and its time in units of the same round by hand, the best of a few.
Fails where a count is a tenth above the one that was kept, or a time a fifth above. --counts leaves the
times out. --keep GAUGE keeps what is measured now, times as the median of several. With --waste clients
take W times the steps they should: what must fail, if the gauges are worth anything.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from counts import Counts
from gauges import GAUGES, Gauge

from safari.experiment.versions import provenance

KEPT = Path(__file__).parent / "kept.json"
COUNTS_ALLOWED, ALLOWED, SAMPLES, REPEATS = 1.1, 1.2, 25, 3
MOST_REPEATS, CERTAIN = 9, 1.25
"""What looks slower is measured on: a busy machine makes it look so for a while."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/regress", description=__doc__.splitlines()[0])
    parser.add_argument("--keep", choices=GAUGES, help="keep what this gauge shows now")
    parser.add_argument("--counts", action="store_true", help="what a round asks for alone, no times")
    parser.add_argument("--waste", type=float, default=1.0, help="clients take so many times the steps")
    given = parser.parse_args()
    if not given.waste >= 0.5:
        parser.error("--waste: at least 0.5")
    kept = json.loads(KEPT.read_text())
    if given.keep:
        kept[given.keep] = to_keep(GAUGES[given.keep](), given.keep)
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
        return 0
    more, slower = [], []
    for name, make in GAUGES.items():
        gauge = make(given.waste)
        more += [] if asks_no_more(name, gauge.counts, kept[name]["counts"]) else [name]
        if not given.counts:
            slower += [] if is_no_slower(name, gauge, ALLOWED * kept[name]["ratio"]) else [name]
    for what, names in {"asks for more than it did": more, "slower than it was": slower}.items():
        if names:
            print(f"{what}: {', '.join(names)}")
    return int(bool(more or slower))


def asks_no_more(name: str, counts: Counts, kept: dict[str, int]) -> bool:
    beside = ", ".join(f"{counts[kind]} {kind} (of {most})" for kind, most in kept.items())
    print(f"{name:8s} {beside}", flush=True)
    return all(counts[kind] <= COUNTS_ALLOWED * most for kind, most in kept.items())


def is_no_slower(name: str, gauge: Gauge, limit: float) -> bool:
    found = [gauge.ratio(SAMPLES) for _ in range(REPEATS)]
    while limit < min(found) < CERTAIN * limit and len(found) < MOST_REPEATS:
        found.append(gauge.ratio(SAMPLES))
    listed = " ".join(f"{ratio:.3f}" for ratio in found)
    print(f"{name:8s} {min(found):.3f} times as long as by hand (of {listed}), limit {limit:.3f}", flush=True)
    return min(found) <= limit


def to_keep(gauge: Gauge, name: str) -> dict[str, object]:
    ratio = statistics.median(gauge.ratio(SAMPLES) for _ in range(MOST_REPEATS))
    made = {**provenance(), "command": f"python benchmarks/regress --keep {name}"}
    return {"ratio": ratio, "counts": dict(sorted(gauge.counts.items())), "made": made}


if __name__ == "__main__":
    sys.exit(main())
