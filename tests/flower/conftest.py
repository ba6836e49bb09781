import importlib.util

import pytest

if importlib.util.find_spec("flwr") is None:
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> str:
    found = importlib.util.find_spec("flwr") is not None
    return "flower: installed" if found else "flower: not installed, tests/flower left out (make test-flower)"


@pytest.fixture(autouse=True)
def _quiet_flower_telemetry(monkeypatch):
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "0")
