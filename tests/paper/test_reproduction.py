"""Recipes and comparisons: which runs redo a table, and what stands beside the paper's numbers."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import safari
from safari.cli import app
from safari.errors import InputError
from safari.paper.compare import Results, compare_table
from safari.paper.directory import describe, extend_reproduction, missing_runs, read_reproduction
from safari.paper.effects import effects_of
from safari.paper.numbers import paper_tables
from safari.paper.protocol import DATASETS, SCORES, Setting, cell_of
from safari.paper.recipes import excluded_covering, reproduction, setting_of, settings_of, tables_named


def made_up(table, seeds, offset, leave_out=lambda setting: False):
    """Results in which every run is `offset` points beside the paper's number."""
    rows = []
    for row in paper_tables()[table].rows:
        setting = setting_of(row)
        if leave_out(setting):
            continue
        for seed in range(seeds):
            cell = cell_of(setting, seed)
            score = (row.mean + offset + 0.1 * (seed - (seeds - 1) / 2)) / 100
            rows.append({"cell": cell.key, "settings": json.dumps(cell.settings), SCORES[row.method]: score})
    return Results(pl.DataFrame(rows, infer_schema_length=None), seeds, fixed_partition=False)


def test_names_of_data_sets_tables_and_all():
    assert tables_named(["fedavg"]) == ("fedavg",)
    assert {"fedavg", "mnist_m", "mnist_coverage"} <= set(tables_named(["mnist"]))
    assert "cifar10_m" not in tables_named(["mnist"])
    assert tables_named(["safari_q", "mnist"]) == ("safari_q",)
    assert tables_named(["cifar10_m", "mnist"]) == ()
    assert set(paper_tables()) < set(tables_named(["all"]))
    with pytest.raises(InputError, match="must be among"):
        tables_named(["imagenet"])


def test_every_assisted_number_has_server_only_and_one_step_beside_it():
    settings = settings_of("mnist_random_init", {"mnist"})
    methods = [setting.method for setting in settings]
    assert methods.count("fedavg") == methods.count("safari") == methods.count("literal") == 12
    assert methods.count("server-only") == 1


def test_the_runs_of_a_table_are_counted_once():
    spec, _ = reproduction(["mnist_random_init", "mnist_m", "fedavg"], 2, False)
    cells = spec.cells()
    assert len(cells) == len({cell.key for cell in cells}) == len(spec.settings)
    rounds = {cell.spec.tables["train"]["rounds"] for cell in cells}
    assert rounds == {150, 5000}


COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction" / "cifar10"


def test_the_committed_runs_lack_48_for_three_seeds_of_the_random_initialisations(tmp_path):
    """CONTRIBUTING.md has the command that trains them, on a copy, which is then what is committed."""
    spec, tables = reproduction(["cifar10_random_init"], 3, False, companions=False)
    missing = missing_runs(COMMITTED, spec).cells()
    assert len(missing) == 48
    assert {cell.spec.seed for cell in missing} == {1, 2}
    assert {cell.spec.tables["algorithm"]["name"] for cell in missing} == {"fedavg", "safari"}
    copy = shutil.copytree(COMMITTED, tmp_path / "cifar10")
    with pytest.warns(UserWarning, match="before safari kept checksums"):
        extend_reproduction(copy, spec, describe(["cifar10_random_init"], tables, 3, False))
    found = read_reproduction(copy)
    assert (found.planned, len(found.finished), found.results.seeds) == (105 + 48, 105, 3)
    assert not missing_runs(copy, spec).cells()
    assert found.tables == read_reproduction(COMMITTED).tables


def test_a_seed_draws_the_partition_unless_it_is_fixed():
    setting = Setting("mnist", "safari", 1, 4, 5, 0.8, 1000)
    drawn = [cell_of(setting, seed).spec.tables["data"]["seed"] for seed in (0, 1)]
    fixed = [cell_of(setting, seed, True).spec.tables["data"]["seed"] for seed in (0, 1)]
    assert drawn == [0, 1]
    assert fixed[0] == fixed[1]


def test_differences_are_ours_minus_the_papers():
    table = paper_tables()["mnist_random_init"]
    for one in compare_table(table, made_up("mnist_random_init", 3, offset=0.7), {"mnist"}):
        assert one.difference == pytest.approx(0.7)
        assert one.ours.count == 3
        assert one.ours.deviation == pytest.approx(0.1)


def test_what_is_missing_is_shown_as_missing():
    def without_p_one(setting):
        return setting.p == 1

    results = made_up("mnist_random_init", 1, 0.0, without_p_one)
    found = compare_table(paper_tables()["mnist_random_init"], results, {"mnist"})
    assert all((one.ours is None) == (one.paper.p == 1) for one in found)
    assert all(one.difference is None for one in found if one.paper.p == 1)


def test_gains_are_paired_and_the_papers_ties_are_confirmed():
    results = made_up("mnist_random_init", 2, offset=0.0)
    found = compare_table(paper_tables()["safari_improvement"], results, {"mnist"})
    for one in found:
        assert one.ties_agree
        assert one.ours.deviation == pytest.approx(0.0, abs=1e-9)
    largest = next(one for one in found if (one.paper.p, one.paper.s) == (1, 4))
    assert largest.ours.mean == pytest.approx(88.06 - 57.09)
    assert largest.paper_accuracy == pytest.approx(57.05 + 31.07)


def test_effects_are_present_in_the_papers_own_numbers():
    effects = {
        effect.claim: effect.present for effect in effects_of(made_up("mnist_random_init", 1, 0.0), {"mnist"})
    }
    assert effects["FedAvg loses accuracy as s grows (p = 1; s = 0, 2, 4)"] is True
    assert effects["SAFARI's gain at s = 4 grows as p falls (p = 10, 5, 2, 1)"] is True
    assert None in effects.values()


@pytest.mark.parametrize("covered", [7, 8, 9])
def test_excluded_clients_leave_as_many_classes_as_asked(covered):
    federation = safari.federate(
        "digits", safari.Classes(classes_per_client=2, samples_per_client=100), safari.ServerSet(20)
    )
    excluded = excluded_covering(federation, 4, covered, seed=3)
    assert len(federation.coverage(np.array(excluded)).covered_classes) == covered


def test_the_command_redoes_a_table_and_reports_it(real_data, tmp_path, monkeypatch):
    base = DATASETS["mnist"].base
    short = {**base, "train": {"rounds": 2, "evaluate_every": 2}}
    monkeypatch.setitem(DATASETS, "mnist", DATASETS["mnist"].__class__(short, 1, 1, 5, 1000))
    monkeypatch.setenv("SAFARI_DATA", str(real_data))
    out = tmp_path / "q"
    arguments = ["reproduce", "safari_q", "mnist", "--seeds", "1", "--out", str(out), "--quiet"]
    plan = CliRunner().invoke(app, [*arguments, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    assert not out.exists()
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    table = pl.read_csv(out / "comparison.csv")
    assert len(table) == 12
    assert table["ours_runs"].to_list() == [1] * 12
    page = CliRunner().invoke(app, ["report", str(out)])
    assert page.exit_code == 0, page.output
    assert "SAFARI by client probability q and s" in (out / "report.html").read_text()
