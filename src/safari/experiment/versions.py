"""What software a run was made by."""

import platform
from importlib.metadata import version

import jax

PACKAGES = ("safari-fl", "jax", "jaxlib", "equinox", "optax", "numpy", "polars")


def versions() -> dict[str, str]:
    """Versions and the kind of device, as they go into `spec.toml`."""
    found = {package: version(package) for package in PACKAGES}
    return {"python": platform.python_version(), "device": jax.devices()[0].platform, **found}
