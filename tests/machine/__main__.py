"""python tests/machine: see the package's docstring."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import evidence
from fuzz.making import make_all
from machine import __doc__ as about
from machine.rights import rights
from machine.rooms import DISKS, LIMITS, commands, rooms
from machine.sizes import sizes
from machine.streams import COMMANDS, streams
from machine.trials import NEEDED, Trials, write_samples

PARTS = {
    "rooms": lambda trials, ready: rooms(trials, ready, commands(), DISKS, LIMITS),
    "rights": rights,
    "sizes": sizes,
    "streams": lambda trials, ready: streams(trials, ready, COMMANDS),
}


def carried_out(part: str, ready: Path) -> Trials:
    """One part of the trials: what came of it is printed and kept."""
    began, trials = time.monotonic(), Trials()
    PARTS[part](trials, ready)
    for (what, how), count in sorted(trials.counts.items()):
        print(f"{count:5d}  {what}: {how}")
    total, failed, seconds = sum(trials.counts.values()), len(trials.failures), time.monotonic() - began
    print(f"{part}: {total} trials, {failed} failed; {seconds:.0f} s", flush=True)
    counts = {f"{what}: {how}": count for (what, how), count in sorted(trials.counts.items())}
    found = {"trials": total, "failed": failed, "seconds": round(seconds), "counts": counts}
    found |= trials.facts if part == "sizes" else {"commands": sorted(trials.commands)}
    evidence.keep("machine", f"python tests/machine {part}", {**found, "failures": trials.failures}, part)
    return trials


def main() -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)} (default: all)")
    parts = parser.parse_args().parts or list(PARTS)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {unknown.pop()}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder)
        if set(parts) != {"sizes"}:
            make_all(ready, NEEDED)
            write_samples(ready)
        ready.chmod(0o755)
        for part in parts:
            failed += len(carried_out(part, ready).failures)
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
