"""The hot path is as fast as it was, as ratios to the same work by hand; and the gauges would tell."""

import os
import subprocess
import sys
from pathlib import Path

GAUGES = Path(__file__).parents[1] / "benchmarks" / "regress"
QUICK = ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")


def measured(*options):
    environment = {key: value for key, value in os.environ.items() if key not in QUICK}
    command = [sys.executable, str(GAUGES), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_the_hot_path_is_no_slower_than_it_was():
    done = measured()
    assert done.returncode == 0, done.stdout + done.stderr


def test_twice_the_steps_would_be_noticed():
    done = measured("--waste", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "slower than it was: softmax, batched, network" in done.stdout
