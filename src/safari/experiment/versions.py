"""What software a run was made by, and where and when."""

import datetime
import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax

from safari.devices import platform as platform_of_device

PACKAGES = ("safari-fl", "jax", "jaxlib", "equinox", "optax", "numpy", "polars")


def versions() -> dict[str, str]:
    """Versions and the kind of device, as they go into `spec.toml`."""
    found = {package: version(package) for package in PACKAGES}
    return {"python": platform.python_version(), "device": platform_of_device(), **found}


def provenance() -> dict[str, str]:
    """Command, date, machine, and the commit where safari runs from a checkout.

    `SAFARI_COMMIT` names the commit where the checkout was copied without its history.
    """
    devices = jax.devices()
    machine = f"{len(devices)} x {devices[0].device_kind}, {os.cpu_count()} cores, {platform.system()}"
    found = {
        "command": " ".join(["safari", *sys.argv[1:]]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine,
    }
    return found | ({"commit": commit()} if commit() else {})


@cache
def commit() -> str:
    """The commit that safari runs from, where it runs from a checkout; else an empty text."""
    if os.environ.get("SAFARI_COMMIT"):
        return os.environ["SAFARI_COMMIT"]
    checkout = Path(__file__).parents[3]
    if not (checkout / ".git").exists() or not (checkout / "src" / "safari").is_dir():
        return ""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
