"""A server that is killed, or whose disk is full: no round is lost that was saved, and no number changes."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start
from safetensors.numpy import load_file

from safari.errors import InputError
from safari.flower import SafariStrategy

ROUNDS = 60
HERE = Path(__file__).parent


def carry_out(state: Path, rounds: int = ROUNDS) -> None:
    made = SafariStrategy(0.7, server_step, fleet=6, per_round=3, start_deadline=0.0, checkpoint=state)
    made.start(LocalGrid(make_app(), nodes(6)), start(), num_rounds=rounds)


def last_saved(state: Path) -> int:
    return max((int(place.name[6:]) for place in (state / "checkpoint").glob("round-*")), default=0)


def killed_after(state: Path, round: int) -> int:
    """Start a server in a process of its own and kill it with -9 once `round` is saved; what was saved."""
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import test_killed, pathlib\n"
    code += f"test_killed.carry_out(pathlib.Path({str(state)!r}))"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as server:
        while last_saved(state) < round and server.poll() is None:
            pass
        server.send_signal(signal.SIGKILL)
    assert server.returncode == -signal.SIGKILL
    return last_saved(state)


def test_a_server_that_is_killed_again_and_again_ends_where_it_would_have_ended(tmp_path, caplog):
    carry_out(tmp_path / "whole")
    state = tmp_path / "state"
    first = killed_after(state, 8)
    second = killed_after(state, first + 12)
    assert first < second < ROUNDS
    carry_out(state)
    assert f"going on after round {second} of {ROUNDS}" in caplog.text
    whole, cut = (pl.read_parquet(tmp_path / name / "metrics.parquet") for name in ("whole", "state"))
    assert cut["round"].to_list() == list(range(1, ROUNDS + 1))
    for column in ("kind", "cohort", "reported"):
        assert whole[column].to_list() == cut[column].to_list()
    expected, found = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "state"))
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def small_files():
    """A way to let no file of this process grow above so many bytes, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_no_more_can_be_saved_the_run_ends_in_one_line_and_goes_on_when_there_is_room(
    tmp_path, small_files
):
    carry_out(tmp_path / "whole", 12)
    state = tmp_path / "state"
    carry_out(state, 5)
    small_files((state / "checkpoint" / "journal.jsonl").stat().st_size + 700)
    with pytest.raises(InputError, match=r"checkpoint = .*cannot be used") as caught:
        carry_out(state, 12)
    small_files(resource.RLIM_INFINITY)
    assert "\n" not in str(caught.value)
    assert 5 <= last_saved(state) < 12
    carry_out(state, 12)
    expected, found = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "state"))
    np.testing.assert_array_equal(found["w"], expected["w"])
