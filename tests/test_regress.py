"""What the gauges of benchmarks/regress compare with computes what safari computes."""

import importlib.util
from pathlib import Path

import jax
import numpy as np

from safari.models.convolution import by_library, halve

GAUGES = Path(__file__).parents[1] / "benchmarks" / "regress"


def test_the_network_by_hand_convolves():
    spec = importlib.util.spec_from_file_location("references", GAUGES / "references.py")
    references = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(references)
    x, kernel = (jax.random.normal(jax.random.key(i), s) for i, s in enumerate([(2, 8, 6, 3), (5, 5, 3, 4)]))
    found = references._largest(references._four_outputs(x, references._block_kernel(kernel)))
    np.testing.assert_allclose(found, halve(by_library(x, kernel)), atol=1e-4)
