"""The gauges are worth something: rounds that take more steps than they should are noticed."""

import subprocess
import sys
from pathlib import Path

GAUGES = Path(__file__).parent


def measured(*options):
    command = [sys.executable, str(GAUGES), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_twice_the_steps_are_noticed():
    done = measured("--waste", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "slower than it was: softmax, batched, network" in done.stdout


def test_a_fifth_more_steps_are_noticed_on_any_machine():
    done = measured("--waste", "1.2", "--counts")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "asks for more than it did: softmax, batched, network" in done.stdout
