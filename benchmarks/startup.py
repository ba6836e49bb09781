"""How long a command takes from the shell to its first round: python benchmarks/startup.py

`safari run` of the digits, and of MNIST where it is there, in processes of their own: the first
start with an empty cache of compiled programs, then the second to the sixth. The clock stops when
the first round is reported. Writes benchmarks/results/startup.json.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from safari.data.sources import load
from safari.errors import InputError
from safari.experiment.versions import provenance

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "startup.json"
AGAIN = 5
UNSET = {"JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"}
"""So that programs and modules that were compiled are kept, as they are by default."""


def seconds_to_first_round(spec: Path, out: Path, cache: Path) -> float:
    command = [sys.executable, "-m", "safari", "run", str(spec), "--out", str(out)]
    environment = {key: value for key, value in os.environ.items() if key not in UNSET}
    environment["XDG_CACHE_HOME"] = str(cache)
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stderr:
            if "round" in line:
                took = time.perf_counter() - began
                process.kill()
                return took
    raise RuntimeError("no round was reported")


def main():
    specs = {"digits": ROOT / "examples" / "digits.toml", "mnist": ROOT / "examples" / "mnist.toml"}
    try:
        load("mnist")
    except InputError as error:
        print(f"mnist is left out: {error}")
        del specs["mnist"]
    found = {}
    for name, spec in specs.items():
        with tempfile.TemporaryDirectory() as folder:
            taken = [
                seconds_to_first_round(spec, Path(folder) / f"run-{number}", Path(folder) / "cache")
                for number in range(1 + AGAIN)
            ]
        found[name] = {"first": taken[0], "again": statistics.median(taken[1:]), "all": taken}
        print(f"{name}: first start {taken[0]:.2f} s, again {found[name]['again']:.2f} s")
    made = {**provenance(), "command": "python benchmarks/startup.py"}
    RESULT.write_text(json.dumps({"seconds_to_first_round": found, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
