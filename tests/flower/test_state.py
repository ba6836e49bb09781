"""What a server saves: generations with checksums, a log that grows by a round, private files."""

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from flwr.app import MetricRecord
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start
from safetensors.numpy import load_file

from safari.errors import InputError
from safari.experiment.checksums import SUMS, Damaged
from safari.flower import SafariStrategy
from safari.flower.arrays import numpy_arrays
from safari.flower.lines import Lines


def run(state, rounds, **keys):
    keys = {"q": 0.7, "fleet": 6, "per_round": 3, "start_deadline": 0.0, **keys}
    made = SafariStrategy(server_step=server_step, checkpoint=state, **keys)
    return numpy_arrays(made.start(LocalGrid(make_app(), nodes(6)), start(), num_rounds=rounds).arrays), made


def generations(state):
    return sorted((state / "checkpoint").glob("round-*"))


def test_three_generations_are_kept(tmp_path):
    run(tmp_path / "state", 5)
    assert [path.name for path in generations(tmp_path / "state")] == [
        "round-00000003",
        "round-00000004",
        "round-00000005",
    ]


@pytest.mark.parametrize("harm", ["truncated", "altered", "missing"])
@pytest.mark.parametrize("name", ["about.json", "state.safetensors", SUMS])
def test_a_damaged_file_is_named_and_the_generation_before_is_taken(tmp_path, caplog, name, harm):
    expected, _ = run(tmp_path / "whole", 7)
    run(tmp_path / "state", 5)
    victim = generations(tmp_path / "state")[-1] / name
    content = victim.read_bytes()
    if harm == "missing":
        victim.unlink()
    else:
        victim.write_bytes(content[:-9] if harm == "truncated" else content[:-9] + b"X" + content[-8:])
    found, made = run(tmp_path / "state", 7)
    assert str(victim) in caplog.text
    assert "going on after round 4 of 7" in caplog.text
    assert made.journal.history()["round"].to_list() == list(range(1, 8))
    np.testing.assert_array_equal(found["w"], expected["w"])


def test_if_no_generation_is_whole_the_run_does_not_begin_anew(tmp_path):
    run(tmp_path / "state", 4)
    for place in generations(tmp_path / "state"):
        (place / "about.json").write_bytes(b"")
    with pytest.raises(InputError, match=r"checkpoint = .*no generation is whole.*about\.json.*backup"):
        run(tmp_path / "state", 5)


def test_a_log_that_was_cut_is_named(tmp_path, caplog):
    run(tmp_path / "state", 5)
    log = tmp_path / "state" / "checkpoint" / "journal.jsonl"
    log.write_bytes(log.read_bytes()[:-9])
    _, made = run(tmp_path / "state", 6)
    assert str(log) in caplog.text
    assert made.journal.history()["round"].to_list() == list(range(1, 7))


def test_a_save_that_did_not_end_leaves_no_trace(tmp_path):
    run(tmp_path / "whole", 6)
    run(tmp_path / "state", 4)
    with (tmp_path / "state" / "checkpoint" / "journal.jsonl").open("ab") as log:
        log.write(b'{"event": "asked", "round": 5}\n{"half a li')
    (tmp_path / "state" / "checkpoint" / ".half").mkdir()
    run(tmp_path / "state", 6)
    whole, cut = (pl.read_parquet(tmp_path / name / "events.parquet") for name in ("whole", "state"))
    whole, cut = (table.drop("time", "seconds").sort("round", "event", "client") for table in (whole, cut))
    assert whole.equals(cut)
    assert not (tmp_path / "state" / "checkpoint" / ".half").exists()


def test_what_a_save_writes_does_not_grow_with_the_rounds(tmp_path):
    sizes = []

    def look(number, arrays):
        saved = generations(tmp_path / "state")
        sizes.append(sum(file.stat().st_size for file in saved[-1].iterdir()) if saved else 0)

    made = SafariStrategy(1.0, fleet=6, start_deadline=0.0, per_round=3, checkpoint=tmp_path / "state")
    made.start(LocalGrid(make_app(), nodes(6)), start(), num_rounds=60, evaluate_fn=look)
    assert sizes[58] < sizes[35] + 100
    lines = Lines(tmp_path / "lines")
    first = lines.append([{"a": 1}])
    second = lines.append([{"a": 2}])
    assert Lines(tmp_path / "lines").read(first) == [{"a": 1}]
    assert Lines(tmp_path / "lines").read(second) == [{"a": 1}, {"a": 2}]
    (tmp_path / "lines").write_bytes(b'{"a": 7}\n{"a": 2}\n')
    with pytest.raises(Damaged, match="lines is damaged"):
        Lines(tmp_path / "lines").read(second)


def test_an_empty_mount_point_will_do(tmp_path, monkeypatch):
    """It cannot be removed and made again, and nothing can be made beside it."""
    state = tmp_path / "volume"
    (state / "lost+found").mkdir(parents=True)
    before = state.stat().st_ino
    run(state, 2)
    assert state.stat().st_ino == before
    assert (state / "summary.json").exists()


@pytest.fixture
def nobody():
    """This process without the rights of root, and a folder that anyone may enter."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    root, other = os.geteuid() == 0, 65534
    yield place, lambda: os.seteuid(other) if root else None, other if root else -1
    if root:
        os.seteuid(0)
    (place / "volumes").chmod(0o755)
    shutil.rmtree(place)


def test_a_folder_may_lie_in_one_that_may_not_be_written_to(nobody):
    """A volume that an administrator made for the server: the server owns it, and nothing around it."""
    place, become_nobody, owner = nobody
    state = place / "volumes" / "state"
    state.mkdir(parents=True)
    os.chown(state, owner, -1)
    (place / "volumes").chmod(0o555)
    become_nobody()
    run(state, 2)
    assert (state / "summary.json").exists()
    found, _ = run(state, 3)
    assert set(found) == {"w", "b"}


def test_errors_name_the_setting_that_a_flower_user_typed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    for place in ("other", "file", "file/below"):
        with pytest.raises(InputError, match=r"^checkpoint = ") as caught:
            run(tmp_path / place, 2)
        assert "--" not in str(caught.value)


def test_the_folder_of_a_simulated_run_is_refused(tmp_path):
    from safari.experiment.run import new_run
    from safari.experiment.spec import complete

    given = {"data": {"source": "digits", "server": {"samples": 20}}, "train": {"rounds": 1}}
    new_run(complete(given), tmp_path / "run", lambda *_: None)
    with pytest.raises(InputError, match=r"checkpoint = .*simulated"):
        run(tmp_path / "run", 2)


def test_what_is_delivered_is_as_private_as_the_state(tmp_path):
    run(tmp_path / "state", 2)
    for path in [tmp_path / "state", *(tmp_path / "state").rglob("*")]:
        if path.name in ("lock", "writer"):
            continue
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    shutil.rmtree(tmp_path / "state")


def test_rounds_after_the_delivered_model_are_not_left_out_without_a_word(tmp_path, caplog):
    _, made = run(tmp_path / "state", 12)
    kinds = made.journal.history()["kind"].to_list()
    last = max(number for number, kind in enumerate(kinds, 1) if kind == "server")
    assert last < 12
    assert f"the delivered model is that after round {last}; {12 - last} later round" in caplog.text


@pytest.mark.parametrize("deliver", ["synced", "last"])
def test_the_delivered_model_is_the_one_that_was_asked_for_and_the_log_says_which(tmp_path, caplog, deliver):
    models = {}

    def look(number, arrays):
        models[number] = numpy_arrays(arrays)
        return MetricRecord({"accuracy": number / 100, "loss": 0.0})

    made = SafariStrategy(
        0.7, server_step, fleet=6, start_deadline=0.0, deliver=deliver, checkpoint=tmp_path / "state"
    )
    result = made.start(LocalGrid(make_app(), nodes(6)), start(), num_rounds=12, evaluate_fn=look)
    kinds = made.journal.history()["kind"].to_list()
    assert kinds[-1] == "client"
    wanted = 12 if deliver == "last" else max(n for n, kind in enumerate(kinds, 1) if kind == "server")
    assert wanted == 12 or deliver == "synced"
    assert f"the delivered model is that after round {wanted}" in caplog.text
    np.testing.assert_array_equal(numpy_arrays(result.arrays)["w"], models[wanted]["w"])
    np.testing.assert_array_equal(
        load_file(tmp_path / "state" / "model.safetensors")["w"], models[wanted]["w"]
    )
    summary = json.loads((tmp_path / "state" / "summary.json").read_text())
    assert summary["accuracy"] == wanted / 100
    assert summary["delivered_round"] == wanted
    with pytest.raises(InputError, match="deliver"):
        SafariStrategy(1.0, deliver="best")
