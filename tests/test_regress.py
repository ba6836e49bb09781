"""The hot path asks for no more than it did and takes no longer beside the same by hand; the gauges tell."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from safari.models.convolution import by_library, halve

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


def test_a_fifth_more_steps_would_be_noticed_on_any_machine():
    done = measured("--waste", "1.2", "--counts")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "asks for more than it did: softmax, batched, network" in done.stdout


def test_the_network_by_hand_convolves():
    spec = importlib.util.spec_from_file_location("references", GAUGES / "references.py")
    references = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(references)
    x, kernel = (jax.random.normal(jax.random.key(i), s) for i, s in enumerate([(2, 8, 6, 3), (5, 5, 3, 4)]))
    found = references._largest(references._four_outputs(x, references._block_kernel(kernel)))
    np.testing.assert_allclose(found, halve(by_library(x, kernel)), atol=1e-4)
