"""Eight devices, and two processes with one each: the numbers of one device."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parent / "on_devices.py"


def started(*arguments):
    environment = os.environ | {"XLA_FLAGS": os.environ["XLA_FLAGS"] + " --xla_backend_optimization_level=0"}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def outcome(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def one():
    return outcome(started(1))


def assert_equal(found, one, devices):
    assert found.pop("devices") == devices
    for label, figures in found.items():
        for name in ("kinds", "cohorts"):
            assert figures[name] == one[label][name]
        np.testing.assert_allclose(figures["loss"], one[label]["loss"], atol=1e-5)
        np.testing.assert_allclose(figures["params"], one[label]["params"], atol=1e-4)


def test_eight_devices_give_the_numbers_of_one(one):
    assert_equal(outcome(started(8)), one, 8)


def test_two_processes_give_the_numbers_of_one(one):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [started(1, port, number) for number in (0, 1)]
    for process in processes:
        assert_equal(outcome(process), one, 2)
