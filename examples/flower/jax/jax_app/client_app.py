"""A client of spec.toml: the server says which one a node is."""

from pathlib import Path

from safari.flower.spec_client import client_app

app = client_app(Path(__file__).with_name("spec.toml"))
