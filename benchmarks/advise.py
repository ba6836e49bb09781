"""How good `safari advise` is: its setting within a full grid over q and server steps.

    python benchmarks/advise.py            # needs MNIST and Fashion-MNIST (SAFARI_DATA)

The advice is timed from command to text, in a fresh process. Its rules were made on MNIST;
Fashion-MNIST is the data set that they were not made on.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parent
SPEC = FOLDER.parent / "examples" / "mnist.toml"
RESULTS = FOLDER / "results" / "advise.json"
SOURCES = ("mnist", "fashion-mnist")
QS = (0.2, 0.4, 0.5, 0.6, 0.8, 0.9)
STEPS = (4, 16, 40, 82, 160)
SEEDS = (10, 11)
"""Not those of the pilot."""


def advice(source, folder):
    """Seconds and what was recommended."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "safari", "advise", str(SPEC), f"data.source={source}", "--quiet"]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True)
    seconds = time.perf_counter() - began
    return seconds, json.loads((folder / "advice.json").read_text())


def grid(source, folder):
    """Mean accuracy of the delivered model by (q, steps), in percent."""
    from safari.experiment.spec import read_toml, set_key
    from safari.experiment.sweep import SweepSpec, new_sweep

    base = set_key(read_toml(SPEC), ["data", "source"], source, "data.source")
    points = [(q, steps, seed) for q in QS for steps in STEPS for seed in SEEDS]
    settings = tuple(
        {"algorithm.q": q, "algorithm.server.steps": steps, "train.seed": seed} for q, steps, seed in points
    )
    results = new_sweep(SweepSpec(base, settings), folder, lambda _: None, {})
    found = {}
    for row in results.to_dicts():
        settings = json.loads(row["settings"])
        key = (settings["algorithm.q"], settings["algorithm.server.steps"])
        found.setdefault(key, []).append(100 * row["accuracy"])
    return {key: statistics.mean(values) for key, values in found.items()}


def main():
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in SOURCES:
            seconds, found = advice(source, Path(folder) / f"advice-{source}")
            cells = grid(source, Path(folder) / f"grid-{source}")
            chosen = dict(text.split("=") for text in found["recommended"])
            mine = cells[float(chosen["algorithm.q"]), int(chosen["algorithm.server.steps"])]
            best = max(cells, key=cells.get)
            report[source] = {
                "advice_seconds": seconds,
                "pilot_rounds": found["pilot_rounds"],
                "recommended": found["recommended"],
                "recommended_accuracy": mine,
                "best": {"q": best[0], "steps": best[1], "accuracy": cells[best]},
                "behind_the_best": cells[best] - mine,
                "grid": [{"q": q, "steps": steps, "accuracy": value} for (q, steps), value in cells.items()],
            }
            print(f"{source}: {seconds:.0f} s, {' '.join(found['recommended'])}, {mine:.2f} %, "
                  f"best of the grid {cells[best]:.2f} %", flush=True)  # fmt: skip
    report |= {
        "seeds": SEEDS,
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
