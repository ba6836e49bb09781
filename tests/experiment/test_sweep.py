"""Sweeps: the grid, the plan, resuming, sharing out, and what several sittings add up to."""

import time
from pathlib import Path

import numpy as np
import polars as pl
import programs
import pytest

from safari.errors import InputError
from safari.experiment import Interrupted, new_run
from safari.experiment.run import read_summary
from safari.experiment.sweep import (
    load_sweep,
    make_cell,
    merge,
    new_sweep,
    plan_sweep,
    planner,
    read_sweep,
    resume_sweep,
    sweep,
)
from safari.experiment.sweep.store import FINISHED
from safari.experiment.versions import commit

EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep-q.toml"
SPEC = """
[data.partition]
samples_per_client = 100
[participation]
excluded = 4
per_round = 5
[algorithm.clients]
batch_size = 10
[algorithm.server]
steps = 3
batch_size = 10
[train]
rounds = 30
[sweep]
seeds = 2
[sweep.grid]
algorithm.q = [0.5, 0.9]
data.server.samples = [20, 50]
"""
NUMBERS = ("accuracy", "accuracy_round", "bytes_up", "server_rounds", "curve_loss_round", "curve_accuracy")


def ignore(_):
    pass


@pytest.fixture
def spec_file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "sweep.toml").write_text(SPEC)
    return new_sweep(load_sweep(folder / "sweep.toml"), folder / "out", ignore, {})


def test_the_grid_times_the_seeds(spec_file):
    cells = load_sweep(spec_file).cells()
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 2
    assert [cell.settings["algorithm.q"] for cell in cells] == [0.5] * 4 + [0.9] * 4
    assert all(cell.spec.tables["data"]["seed"] == cell.spec.seed for cell in cells)


def test_a_fixed_partition_stays_while_training_varies(spec_file):
    cells = load_sweep(spec_file, ["sweep.fixed_partition=true", "train.seed=3"]).cells()
    assert {cell.spec.seed for cell in cells} == {3, 4}
    assert {cell.spec.tables["data"]["seed"] for cell in cells} == {3}
    assert {cell.spec.tables["participation"]["seed"] for cell in cells} == {3}


def test_a_cell_is_named_by_what_it_computes_not_by_where_the_data_lie():
    here, there = (make_cell({}, {"data.folder": folder}) for folder in ("/a", "/b"))
    assert here.key == there.key
    assert here.key != make_cell({}, {"train.seed": 1}).key


def test_names_of_cells_last():
    """Results of earlier versions are found by them: do not change this lightly."""
    assert make_cell({}, {"algorithm.q": 0.5, "train.seed": 3}).key == "b155244773f64f2c"


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("sweep.grid.algorithm.q=0.5", "sweep.grid.algorithm.q"),
        ("sweep.grid.algorithm.q=[]", "sweep.grid.algorithm.q"),
        ("sweep.grid.algorithm.q=[0.5, 2.0]", "algorithm.q"),
        ("sweep.grid.algorithm.nonsense=[1]", "algorithm.nonsense"),
        ("sweep.grid.train.seed=[1, 2]", "sweep.grid.train.seed"),
        ("sweep.seeds=0", "sweep.seeds"),
        ("sweep.seeds=[1, 1]", "sweep.seeds"),
        ("sweep.seeds='many'", "sweep.seeds"),
        ("sweep.sheets=3", "sweep.sheets"),
        ("sweep.grid.algorithm.q=[0.5, 0.5]", "sweep.grid.algorithm.q"),
        ("algorithm.q=0.3", "algorithm.q"),
    ],
)
def test_bad_sweeps_name_the_key_and_write_nothing(spec_file, override, key):
    out = spec_file.parent / "out"
    with pytest.raises(InputError) as caught:
        new_sweep(load_sweep(spec_file, [override]), out, ignore, {})
    assert caught.value.key == key
    assert not out.exists()


def test_an_error_in_a_grid_names_the_cell(spec_file):
    with pytest.raises(InputError, match=r"in the cell algorithm.q = 0.5, data.server.samples = 900"):
        plan_sweep(load_sweep(spec_file, ["sweep.grid.data.server.samples=[20, 900]"]))


def test_more_shares_than_runs_are_refused(spec_file):
    with pytest.raises(InputError, match="only 8 runs"):
        load_sweep(spec_file).share("9/9")


def test_a_changed_file_makes_other_cells(tmp_path):
    np.savez(tmp_path / "my.npz", x=np.ones((4, 2)), y=np.array([0, 1, 0, 1]))
    before = make_cell({}, {"data.source": str(tmp_path / "my.npz")}).key
    np.savez(tmp_path / "other.npz", x=np.zeros((4, 2)), y=np.array([0, 1, 0, 1]))
    assert make_cell({}, {"data.source": str(tmp_path / "other.npz")}).key != before
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "it.npz").write_bytes((tmp_path / "my.npz").read_bytes())
    assert make_cell({}, {"data.source": str(tmp_path / "moved" / "it.npz")}).key == before


def test_cells_that_differ_in_server_samples_share_a_program(spec_file):
    plan = plan_sweep(load_sweep(spec_file)).table()
    assert plan["runs"].to_list() == [8]
    apart = plan_sweep(load_sweep(spec_file, ["sweep.grid.participation.per_round=[2, 5]"])).table()
    assert sorted(apart["runs"].to_list()) == [8, 8]


def test_stacked_cohorts_are_padded_to_the_next_band(spec_file, monkeypatch):
    monkeypatch.setattr(planner, "_stacks", lambda run: True)
    spec = load_sweep(spec_file, ["sweep.grid.participation.per_round=[1, 2, 3, 4, 5, 6]", "sweep.seeds=1"])
    units = planner.make_plan(sweep.prepare_cells(spec.cells(), {})).units
    places = {one.run.roster.slots: len(unit.cells) for unit in units for one in unit.cells}
    assert places == {6: 12, 3: 8, 1: 4}


def test_units_of_equal_length_go_as_asked(spec_file):
    spec = load_sweep(
        spec_file, ["sweep.grid.algorithm.name=['fedavg', 'safari']", "sweep.grid.algorithm.q=[0.5]"]
    )
    cells = spec.cells()
    units = planner.make_plan(sweep.prepare_cells(cells, {})).units
    assert [unit.cells[0].cell.key for unit in units] == [cell.key for cell in cells]


def test_stacked_cells_are_split_to_fit_the_memory(spec_file, monkeypatch):
    prepared = sweep.prepare_cells(load_sweep(spec_file).cells(), {})
    each = planner.run_bytes(prepared[0].run)
    monkeypatch.setattr(planner, "_stacks", lambda run: True)
    for fits, widths in ((100, [8]), (3, [3, 3, 3]), (1, [1] * 8)):
        monkeypatch.setattr(planner, "memory", lambda fits=fits: 2.5 * fits * each)
        units = planner.make_plan(prepared).units
        assert [unit.width for unit in units] == widths
        assert sum(len(unit.cells) for unit in units) == 8
        assert all(unit.bytes <= fits * each * 1.25 for unit in units)


def test_a_cell_equals_the_single_run(whole, tmp_path, spec_file):
    cell = load_sweep(spec_file).cells()[3]
    new_run(cell.spec, tmp_path / "alone", ignore)
    alone, row = read_summary(tmp_path / "alone"), whole.row(3, named=True)
    assert row["cell"] == cell.key
    for name in ("accuracy", "accuracy_round", "bytes_up", "server_rounds", "covered_classes", "excluded"):
        assert row[name] == pytest.approx(alone[name], abs=1e-6), name


def test_an_interrupted_sweep_goes_on_where_it_was(spec_file, tmp_path, whole, monkeypatch):
    monkeypatch.setattr("safari.experiment.sweep.work.LOOK_SECONDS", 0.01)

    def stop_soon(progress):
        if progress.rounds_done > 60:
            raise Interrupted

    with pytest.raises(Interrupted):
        new_sweep(load_sweep(spec_file), tmp_path / "out", stop_soon, {})
    before = read_sweep(tmp_path / "out")[1]
    began = []
    results = resume_sweep(tmp_path / "out", lambda progress: began.append(progress.began_with))
    assert began[0] >= 30 * len(before) > 0 or began[0] > 0
    assert results.select(NUMBERS).equals(whole.select(NUMBERS))
    assert not list((tmp_path / "out" / "unfinished").glob("*"))


def test_shares_add_up_to_the_whole(spec_file, tmp_path, whole, monkeypatch):
    """Each row names its own commit and device, whatever the others were made by."""
    spec = load_sweep(spec_file)
    parts = [tmp_path / "one", tmp_path / "two"]
    for part, share in zip(parts, ("1/2", "2/2"), strict=True):
        if share == "2/2":
            monkeypatch.setattr("safari.experiment.sweep.store.commit", lambda: "elsewhere")
        new_sweep(spec.share(share), part, ignore, {})
    assert merge(parts, tmp_path / "together") == (8, 8)
    together = resume_sweep(tmp_path / "together", lambda progress: pytest.fail("nothing was left to do"))
    assert together["commit"].to_list() == 4 * [commit()] + 4 * ["elsewhere"]
    numbers = ["cell", *NUMBERS]
    assert together.select(numbers).sort("cell").equals(whole.select(numbers).sort("cell"))


def test_a_merged_part_goes_on_from_its_saved_state(spec_file, tmp_path, whole):
    spec = load_sweep(spec_file)

    def stop(progress):
        raise Interrupted

    new_sweep(spec.share("1/2"), tmp_path / "one", ignore, {})
    with pytest.raises(Interrupted):
        new_sweep(spec.share("2/2"), tmp_path / "two", stop, {})
    planned, finished = merge([tmp_path / "one", tmp_path / "two"], tmp_path / "together")
    assert planned == 8
    assert 4 <= finished < 8
    together = resume_sweep(tmp_path / "together", ignore)
    numbers = ["cell", *NUMBERS]
    assert together.select(numbers).sort("cell").equals(whole.select(numbers).sort("cell"))


def test_diverging_cells_are_noted_and_the_others_go_on(spec_file, tmp_path):
    wild = ["sweep.grid={algorithm={clients={local_rate=[0.1, 1e7]}}}", "sweep.seeds=1"]
    results = new_sweep(load_sweep(spec_file, wild), tmp_path / "out", ignore, {})
    assert [at is None for at in results["diverged_at"]] == [True, False]


@pytest.mark.parametrize("kills", [4])
def test_a_sweep_killed_at_random_moments_gives_the_same_tables(tmp_path, kills, monkeypatch):
    monkeypatch.setenv("SAFARI_CHECKPOINT_SECONDS", "0.02")
    text = SPEC.replace("rounds = 30", "rounds = 400")
    (tmp_path / "sweep.toml").write_text(text)
    done = programs.run("sweep", "sweep.toml", "--out", "whole", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = set()
    for number in range(kills):
        arguments = ["sweep", "--resume", "killed"] if number else ["sweep", "sweep.toml", "--out", "killed"]
        process = programs.start(*arguments, "--quiet", cwd=tmp_path)
        finished = tmp_path / "killed" / FINISHED
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(finished.glob("[!.]*"))) > number or list(
                finished.parent.glob("unfinished/*/round-*")
            ):
                break
            time.sleep(0.02)
        process.kill()
        process.communicate()
        seen.add((len(list(finished.glob("[!.]*"))), len(list(finished.parent.glob("unfinished/*")))))
    assert any(count for pair in seen for count in pair), "no kill came after a saved state"
    done = programs.run("sweep", "--resume", "killed", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "killed" / "table.csv").read_bytes() == (tmp_path / "whole" / "table.csv").read_bytes()
    one, two = (pl.read_parquet(tmp_path / name / "results.parquet") for name in ("whole", "killed"))
    assert one.select(NUMBERS).equals(two.select(NUMBERS))


def test_the_example_is_sound():
    assert len(load_sweep(EXAMPLE).cells()) == 140
