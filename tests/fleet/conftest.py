import importlib.util

import pytest
from fleet_processes import NAUGHTY, PRESENT, deployed

if importlib.util.find_spec("flwr") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    work = tmp_path_factory.mktemp("fleet") / "work"
    only = " ".join(map(str, PRESENT))
    with deployed(NAUGHTY, work, "--nodes", "10", "--only", only) as up:
        yield up
