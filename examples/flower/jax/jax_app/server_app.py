"""The server: SAFARI over the clients of spec.toml."""

from pathlib import Path

from safari.flower.spec_server import server_app

app = server_app(Path(__file__).with_name("spec.toml"))
