"""How far safari's rounds are from the same rounds by hand: python benchmarks/regress [--keep]

Prints each gauge's ratio beside the one that was kept; with --keep the new ones are kept. Fails
where one is more than a fifth above.
"""

import json
import sys
import time
from pathlib import Path

from gauges import GAUGES

from safari.experiment.versions import provenance

KEPT = Path(__file__).parent / "kept.json"
ALLOWED = 1.2
SAMPLES, REPEATS = 40, 5


def main() -> int:
    kept = json.loads(KEPT.read_text())["ratios"] if KEPT.exists() else {}
    ratios, slower = {}, False
    for name, make in GAUGES.items():
        found = sorted(make().ratio(SAMPLES) for _ in range(REPEATS))
        ratios[name] = found[REPEATS // 2]
        limit = ALLOWED * kept.get(name, float("inf"))
        slower |= ratios[name] > limit
        print(f"{name:8s} {ratios[name]:.3f} ({found[0]:.3f} to {found[-1]:.3f}), limit {limit:.3f}")
    if "--keep" in sys.argv:
        made = {
            **provenance(),
            "command": "python benchmarks/regress --keep",
            "date": time.strftime("%Y-%m-%d"),
        }
        KEPT.write_text(json.dumps({"ratios": ratios, "made": made}, indent=2) + "\n")
        return 0
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
