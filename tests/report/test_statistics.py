"""Statistics over seeds: exact numbers where mathematics gives them."""

import json
import math

import numpy as np
import polars as pl
import pytest

from safari.report.page import render
from safari.report.statistics import band, deviation, estimate, is_tie, paired, paired_over_folds
from safari.report.sweep_page import sweep_page
from safari.report.sweeps import differences, grouped, short, varied
from safari.report.tables import difference_table


def test_mean_deviation_and_interval_of_four_values():
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.deviation == pytest.approx(math.sqrt(5 / 3))
    assert found.high - found.mean == pytest.approx(3.182446 * math.sqrt(5 / 3) / 2, rel=1e-5)


def test_one_value_has_no_deviation_and_none_has_no_mean():
    assert math.isnan(estimate([3.0]).deviation)
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_a_band_reaches_one_sample_deviation_to_either_side():
    mean, low, high = band([[11.0, 5.0], [12.0, 5.0], [16.0, 5.0]])
    assert mean.tolist() == [13.0, 5.0]
    assert (
        (high - mean).tolist() == (mean - low).tolist() == pytest.approx([estimate([1, 2, 6]).deviation, 0])
    )
    assert [one.tolist() for one in band([[0.0, 100.0], [1.0, 90.0]])[1:]] == [
        [0.0, pytest.approx(95 - 50**0.5)],
        [pytest.approx(0.5 + 0.5**0.5), 100.0],
    ]
    assert np.isnan(deviation([[1.0, 5.0]])).all()
    assert [one.tolist() for one in band([[1.0, 5.0]])] == [[1.0, 5.0]] * 3


def test_the_interval_covers_the_mean_95_times_of_100():
    rng = np.random.default_rng(0)
    hits = [
        abs((found := estimate(rng.normal(7, 2, 5))).mean - 7) <= found.high - found.mean for _ in range(4000)
    ]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.012)


def test_pairing_removes_what_seeds_share():
    luck = {seed: 10.0 * seed for seed in range(5)}
    better = {seed: value + 1.0 for seed, value in luck.items()}
    found = paired(better, luck | {9: 0.0})
    assert found.count == 5
    assert found.mean == pytest.approx(1.0)
    assert found.deviation == pytest.approx(0.0)
    assert paired({1: 2.0}, {2: 2.0}) is None


def test_the_papers_rule_for_ties():
    assert is_tie(1.99)
    assert is_tie(-1.99)
    assert not is_tie(2.0)


def rows():
    """Two algorithms at two q under three seeds; safari is 5 points above."""
    for name, plus in (("fedavg", 0.0), ("safari", 0.05)):
        for q in (0.4, 0.8):
            for seed in range(3):
                accuracy = 0.5 + plus + 0.1 * q + 0.01 * seed
                settings = {"algorithm.name": name, "algorithm.q": q, "train.rounds": 2, "train.seed": seed}
                yield {
                    "cell": f"{name}{q}{seed}", "settings": json.dumps(settings), "seed": seed,
                    "accuracy": accuracy, "accuracy_round": accuracy, "accuracy_ceiling": 0.6,
                    "diverged_at": None, "curve_round": [1, 2], "curve_accuracy": [0.3, accuracy],
                    "curve_accuracy_round": [accuracy, accuracy],
                }  # fmt: skip


@pytest.fixture
def results():
    return pl.DataFrame(list(rows()))


def test_what_varies_is_found_and_named_shortly(results):
    assert varied(results) == ["algorithm.name", "algorithm.q"]
    assert short(["algorithm.q", "data.alpha", "train.seed", "data.seed"]) == [
        "q",
        "alpha",
        "train.seed",
        "data.seed",
    ]


def test_points_are_grouped_and_algorithms_paired(results):
    groups = grouped(results)
    assert groups["runs"].to_list() == [3] * 4
    assert groups["mean"][0] == pytest.approx(100 * (0.5 + 0.04 + 0.01))
    apart = differences(results)
    assert apart["mean"].to_list() == pytest.approx([5.0, 5.0])
    assert apart["deviation"].to_list() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_methods_of_clients_are_paired_as_algorithms_are(results):
    inside = results.with_columns(pl.col("settings").str.replace("algorithm.name", "algorithm.clients.name"))
    apart = differences(inside)
    assert apart["algorithm.clients.name"].to_list() == ["safari - fedavg"] * 2
    assert apart["mean"].to_list() == pytest.approx([5.0, 5.0])


def test_an_interval_of_shares_ends_where_shares_do():
    found = estimate([2.0, 60.0]).within(0, 100)
    assert (found.mean, found.low, found.high) == (31.0, 0.0, 100.0)
    assert math.isnan(estimate([2.0]).within(0, 100).low)
    apart = {"fedavg": (0.1, 0.9), "safari": (0.9, 0.1)}
    few = [
        {
            **row,
            "settings": json.dumps({"algorithm.name": name, "train.seed": row["seed"]}),
            "accuracy": value,
        }
        for row in list(rows())[:2]
        for name, values in apart.items()
        for value in [values[row["seed"]]]
    ]
    results = pl.DataFrame(few)
    assert grouped(results).select("low", "high").rows() == [(0.0, 100.0)] * 2
    assert differences(results).select("low", "high").rows() == [(-100.0, 100.0)]


@pytest.mark.parametrize(("ties", "shown"), [(False, "+1.50"), (True, "-")])
def test_differences_within_two_points_are_ties_on_demand(ties, shown):
    apart = pl.DataFrame({"q": [0.5], "runs": [3], "mean": [1.5], "low": [1.0], "high": [2.0]})
    cells = [column._cells[0] for column in difference_table(apart, ties).columns]
    assert cells == ["0.5", "3", shown, "+1.00 to +2.00"]


def test_a_page_shows_tables_curves_and_what_is_missing(results):
    html = render(sweep_page("Sweep", results, ["q = 0.9", "q = 1.0"], spec="[train]", facts={}))
    assert "2 runs are missing" in html
    assert "Missing: q\xa0=\xa00.9; q\xa0=\xa01.0." in html
    assert "Against FedAvg" in html
    assert "Accuracy over the rounds" in html
    assert "12 of 14 runs finished" in html


def test_bands_on_the_page_are_the_deviations_of_its_table(results):
    blocks = {block.key: block for block in sweep_page("Sweep", results, [], spec="", facts={}).blocks}
    *lines, ceiling = blocks["curves0"].lines
    assert ceiling.label == "ceiling of client-only training: 60.0 %"
    reach = [line.high[-1] - line.mean[-1] for line in lines]
    assert reach == pytest.approx(grouped(results)["deviation"].to_list())


def test_diverged_runs_are_counted_and_left_out(results):
    broken = results.with_columns(
        pl.when(pl.col("seed") == 2).then(1).otherwise(None).alias("diverged_at"),
        pl.when(pl.col("seed") == 2).then(0.99).otherwise(pl.col("accuracy")).alias("accuracy"),
    )
    groups = grouped(broken)
    assert groups["diverged"].to_list() == [1] * 4
    assert groups["mean"][0] == pytest.approx(100 * (0.5 + 0.04 + 0.005))
    assert "4 runs diverged" in render(sweep_page("Sweep", broken, [], spec="", facts={}))


def test_a_setting_that_only_some_cells_have_keeps_them_apart(results):
    some = results.with_columns(
        pl.when(pl.col("seed") == 0)
        .then(pl.col("settings").str.replace("}", ', "algorithm.server.steps": 1}', literal=True))
        .otherwise(pl.col("settings"))
        .alias("settings")
    )
    assert "algorithm.server.steps" in varied(some)
    assert len(grouped(some)) == 8


@pytest.mark.parametrize(("settings", "values", "figures"), [(1, 14, 1), (2, 14, 2), (2, 4, 1)])
def test_figures_never_have_too_many_lines_nor_hide_them_silently(settings, values, figures):
    rows = [
        {
            "cell": f"{a}{b}", "seed": 0, "accuracy": 0.5, "accuracy_round": 0.5, "accuracy_ceiling": 0.6,
            "settings": json.dumps({"a.x": a, **({"b.y": b} if settings > 1 else {}), "train.seed": 0}),
            "diverged_at": None, "curve_round": [1], "curve_accuracy": [0.5], "curve_accuracy_round": [0.5],
        }
        for a in range(values)
        for b in range(2 if settings > 1 else 1)
    ]  # fmt: skip
    page = sweep_page("Sweep", pl.DataFrame(rows), [], spec="", facts={})
    drawn = [block for block in page.blocks if block.key.startswith("curves")]
    assert len(drawn) == figures
    lines = [[line for line in block.lines if "ceiling" not in line.label] for block in drawn]
    assert all(len(found) <= 10 for found in lines)
    fewer = [block for block, found in zip(drawn, lines, strict=True) if len(found) < values]
    assert all("lines are drawn" in block.caption for block in fewer)


def test_folds_that_share_samples_widen_the_interval_as_nadeau_and_bengio_say():
    first, second = {0: 3.0, 1: 5.0, 2: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0}
    found = paired_over_folds(first, second, held_out=1 / 3)
    assert found.mean == pytest.approx(2.0)
    assert found.high - found.mean == pytest.approx(4.302653 * 1.0 * math.sqrt(1 / 3 + 1 / 2), rel=1e-5)


def test_the_best_of_several_needs_a_wider_interval():
    first, second = {0: 3.0, 1: 5.0, 2: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0}
    alone, best = (paired_over_folds(first, second, 1 / 3, tried) for tried in (1, 10))
    assert (best.high - best.mean) / (alone.high - alone.mean) == pytest.approx(14.08905 / 4.302653, rel=1e-5)
