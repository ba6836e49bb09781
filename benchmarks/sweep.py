"""A sweep of MNIST runs against the same runs one after another in one process.

    python benchmarks/sweep.py [RUNS]      # needs MNIST (SAFARI_DATA, or safari data fetch mnist)

Both sides start in a fresh process, compile once and write their directories; what is timed
is all of it, imports apart. Peak memory is that of the process.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parent
SPEC = FOLDER.parent / "examples" / "mnist.toml"
RESULTS = FOLDER / "results" / "sweep.json"
RUNS = 64
SIDES = ("single", "sweep")


def specs(runs):
    """q and the seeds vary: the runs are SAFARI's, FedAvg's (q = 1) and the server's (q = 0)."""
    from safari.experiment.spec import read_toml
    from safari.experiment.sweep import SweepSpec

    points = [(q, seed) for seed in range(-(-runs // 4)) for q in (0.4, 0.6, 0.8, 0.9)][:runs]
    return SweepSpec(read_toml(SPEC), tuple({"algorithm.q": q, "train.seed": seed} for q, seed in points))


def measure(side, runs):
    """Seconds, peak bytes and accuracies of one side, in this process."""
    from safari.experiment import new_run
    from safari.experiment.sweep import new_sweep

    spec = specs(runs)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        if side == "sweep":
            accuracies = new_sweep(spec, Path(folder) / "out", lambda _: None, {})["accuracy"].to_list()
        else:
            accuracies = [
                new_run(cell.spec, Path(folder) / cell.key, lambda _: None).accuracy for cell in spec.cells()
            ]
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "peak_bytes": peak, "accuracies": accuracies}


def apart(side, runs):
    done = subprocess.run(
        [sys.executable, __file__, str(runs), side], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[2], runs)))
        return
    found = {side: apart(side, runs) for side in SIDES}
    one, two = (found[side].pop("accuracies") for side in SIDES)
    report = {
        "runs": runs,
        "rounds": 150,
        **found,
        "ratio": found["single"]["seconds"] / found["sweep"]["seconds"],
        "largest_accuracy_difference": max(abs(a - b) for a, b in zip(one, two, strict=True)),
        "machine": f"{platform.machine()}, {platform.system()}, {len(os.sched_getaffinity(0))} cores",
        "date": date.today().isoformat(),
        "command": f"python benchmarks/sweep.py {runs}",
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER
        ).stdout.strip(),
    }
    print(json.dumps(report, indent=2))
    if runs == RUNS:
        RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
