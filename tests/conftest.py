"""Shared by all tests: run-time shape checks, compiled programs kept, the real data."""

import os
import tempfile
from importlib.metadata import version
from pathlib import Path


def quick_to_compile() -> str:
    """XLA's older emitters compile in about half the time, which is most of what the tests take.

    Only for versions that are known to have the flag: XLA stops at one that it does not know.
    """
    known = (0, 8) <= tuple(int(part) for part in version("jaxlib").split(".")[:2]) <= (0, 11)
    return "--xla_cpu_use_fusion_emitters=false" if known else ""


os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "safari-test-programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

os.environ.setdefault("XLA_FLAGS", quick_to_compile())
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

from jaxtyping import install_import_hook  # noqa: E402

with install_import_hook("safari", "shape_checks.check"):
    import safari

import jax  # noqa: E402
import pytest  # noqa: E402

OPTIMISED = ("test_mnist", "test_advise", "theory", "paper", "test_models", "test_safari")
"""What trains for so long that compiling it well pays, and what promises equal bits."""


@pytest.fixture(autouse=True, scope="module")
def compiled_as_it_pays(request):
    """Most tests train for a moment: XLA need not optimise what they compile."""
    quick = not any(part in str(request.path) for part in OPTIMISED)
    jax.config.update("jax_disable_most_optimizations", quick)


@pytest.fixture(scope="session")
def digits() -> "safari.Federation":
    return safari.federate("digits", safari.Classes(samples_per_client=120), safari.ServerSet(50))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with MNIST, Fashion-MNIST and CIFAR-10 in their published layout."""
    if not os.environ.get("SAFARI_DATA"):
        pytest.skip("SAFARI_DATA is not set: it names the folder with the real data sets")
    return Path(os.environ["SAFARI_DATA"])
