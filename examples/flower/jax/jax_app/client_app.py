"""A client: the partition of spec.toml that its node is told to be."""

from pathlib import Path

from safari.flower.spec_client import client_app

app = client_app(Path(__file__).with_name("spec.toml"))
