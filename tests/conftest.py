"""Shared by all tests: run-time shape checks, compiled programs kept, the real data."""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "safari-test-programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

from jaxtyping import install_import_hook

with install_import_hook("safari", "shape_checks.check"):
    import safari

import pytest


@pytest.fixture(scope="session")
def digits() -> "safari.Federation":
    return safari.federate("digits", samples_per_client=120, server_samples=50)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with MNIST, Fashion-MNIST and CIFAR-10 in their published layout."""
    if not os.environ.get("SAFARI_DATA"):
        pytest.skip("SAFARI_DATA is not set: it names the folder with the real data sets")
    return Path(os.environ["SAFARI_DATA"])
