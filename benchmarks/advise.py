"""Whether the advice of `safari advise` holds: on fresh seeds and the test set, against the user's spec.

    python benchmarks/advise.py            # needs MNIST (SAFARI_DATA)
    python benchmarks/advise.py digits hospitals

The pilot sees no test set; here the test set is looked at once. Differences are paired over the seeds.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import date
from pathlib import Path

from safari.experiment.spec import apply_overrides, read_toml
from safari.experiment.sweep import SweepSpec, new_sweep
from safari.report.statistics import estimate

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parent / "examples"
RESULTS = FOLDER / "results" / "advise.json"
SEEDS = range(100, 108)
"""None of the pilot's."""
USERS = {
    "digits": (EXAMPLES / "digits.toml", []),
    "digits, FedAvg": (EXAMPLES / "digits.toml", ["algorithm.name=fedavg"]),
    "hospitals": (EXAMPLES / "hospitals" / "hospitals.toml", []),
    "hospitals, FedAvg": (EXAMPLES / "hospitals" / "hospitals.toml", ["algorithm.name=fedavg"]),
    "MNIST": (EXAMPLES / "mnist.toml", []),
    "MNIST, one server step": (EXAMPLES / "mnist.toml", ["algorithm.server.steps=1"]),
}
METRIC = "balanced_accuracy"


def advice(spec, overrides, folder):
    """Seconds, and what was recommended."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "safari", "advise", str(spec), *overrides, "--quiet", "--metric", METRIC]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True)
    return time.perf_counter() - began, json.loads((folder / "advice.json").read_text())


def measured(spec, overrides, folder):
    """The metric on the test set, seed by seed, in percent."""
    given = apply_overrides(read_toml(spec), overrides)
    settings = tuple({"train.seed": seed} for seed in SEEDS)
    results = new_sweep(SweepSpec(given, settings), folder, lambda _: None, {})
    return [100 * value for value in results[METRIC]]


def trial(name, folder):
    spec, own = USERS[name]
    seconds, found = advice(spec, own, folder / "advice")
    mine = measured(spec, own, folder / "own")
    report = {
        "verdict": found["verdict"],
        "recommended": found["recommended"],
        "pilot_rounds": found["pilot_rounds"],
        "rounds": found["rounds"],
        "advice_seconds": round(seconds, 1),
        "own": asdict(estimate(mine)),
    }
    if found["recommended"]:
        theirs = measured(spec, [*own, *found["recommended"]], folder / "recommended")
        report["recommended_score"] = asdict(estimate(theirs))
        report["gain"] = asdict(estimate([b - a for a, b in zip(mine, theirs, strict=True)]))
    return report


def main():
    wanted = [name for name in USERS if not sys.argv[1:] or name.partition(",")[0] in sys.argv[1:]]
    subprocess.run([sys.executable, EXAMPLES / "hospitals" / "make_data.py"], check=True)
    report = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            report[name] = trial(name, Path(folder))
        gain = report[name].get("gain")
        shown = "" if gain is None else f" {gain['mean']:+.1f} ({gain['low']:+.1f} to {gain['high']:+.1f})"
        print(f"{name}: {report[name]['advice_seconds']:.0f} s. {report[name]['verdict']}{shown}", flush=True)
    report["about"] = {
        "metric": METRIC,
        "seeds": list(SEEDS),
        "machine": f"{platform.machine()}, {platform.system()}, {len(os.sched_getaffinity(0))} cores",
        "date": date.today().isoformat(),
        "command": "python benchmarks/advise.py",
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER
        ).stdout.strip(),
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
