"""What a page says beyond accuracy: findings, classes, clients."""

import re

import polars as pl
import pytest
from sample_pages import COMPARED, run

from safari.report.class_blocks import class_blocks
from safari.report.client_blocks import MOST_NAMED, Took, took_part, who_took_part
from safari.report.findings import findings
from safari.report.settings import Settings
from safari.report.sweep_page import sweep_page

RESULTS = pl.DataFrame(COMPARED)
SETTINGS = Settings.of(RESULTS)


def bars_of(block):
    return {(group.title, bar.label): bar for group in block.groups for bar in group.bars}


def test_every_class_has_recall_precision_and_who_holds_it():
    classes, curves = class_blocks(SETTINGS)
    assert classes.columns == ("recall in %", "precision in %")
    bars = bars_of(classes)
    assert bars["sepsis", "FedAvg"].texts[0] == "6.00 ± 1.00"
    assert bars["sepsis", "SAFARI"].texts == ("57.00 ± 2.00", "80.00 ± 0.00")
    notes = {group.title: group.note for group in classes.groups}
    assert notes["sepsis"] == "20 test samples; clients that can come hold 10 % of its training samples"
    assert curves.title == "Recall of sepsis over the rounds"
    assert curves.lines[-1].mean == pytest.approx((0.0, 57.0))


def test_findings_name_the_best_and_what_cannot_be_told_from_it():
    found = findings(SETTINGS, [])
    assert found.lead.startswith(
        "Balanced accuracy is highest with SAFARI: 75.5 %. FedAvg is 25.0 points below ("
    )
    assert found.points[0].startswith(
        "Accuracy is highest with FedAvg: 90.1 %. SAFARI cannot be told from it"
    )
    assert found.points[1].startswith("Recall of the worst class (sepsis) is highest with SAFARI: 57.0 %.")
    assert found.points[-1].startswith("1 of 3 clients never take part")


def test_several_settings_are_listed_once_by_whether_they_can_be_told_from_the_best():
    recalls = {"safari": 0.6, "scaffold": 0.59, "fedprox": 0.585, "fedavg": 0.2, "server-only": 0.1}
    wobble = {"scaffold": 0.05, "fedprox": -0.05}
    rows = [
        run(name, seed, [0.9, recall + wobble.get(name, 0.0) * (seed - 1)])
        for name, recall in recalls.items()
        for seed in range(3)
    ]
    lead = findings(Settings.of(pl.DataFrame(rows)), []).lead
    assert re.sub(r" \(.*?\)", "", lead) == (
        "Balanced accuracy is highest with SAFARI: 75.0 %. Cannot be told from it: SCAFFOLD; FedProx. "
        "Below it: FedAvg by 20.0 points; server only by 25.0 points."
    )


def test_one_seed_claims_no_difference_and_speaks_of_no_seeds():
    one = RESULTS.filter(pl.col("seed") == 0)
    page = sweep_page("One", one, [], "", {})
    words = repr(page)
    assert "over the seeds" not in words
    assert " seeds" not in words
    assert "cannot be told" not in words
    assert "Each number is of a single run" in words


def test_differences_are_shown_by_every_metric_with_their_intervals():
    (block,) = (block for block in sweep_page("", RESULTS, [], "", {}).blocks if block.key == "differences")
    assert [group.title for group in block.groups] == [
        "accuracy",
        "balanced accuracy",
        "recall of the worst class",
    ]
    bar = bars_of(block)["recall of the worst class", "SAFARI"]
    assert bar.texts[0] == "+51.00"
    assert bar.low < bar.value < bar.high
    assert block.ends[0] < 0 < bar.high < block.ends[1]


def test_a_sweep_over_the_clients_method_has_its_differences_too():
    rows = [
        run("safari", seed, [0.9, 0.1 + 0.2 * (name == "fedprox")], **{"algorithm.clients.name": name})
        | {"cell": f"{name}{seed}"}
        for name in ("fedavg", "fedprox")
        for seed in range(2)
    ]
    page = sweep_page("", pl.DataFrame(rows), [], "", {})
    (block,) = (block for block in page.blocks if block.key == "differences")
    assert block.title == "Against FedAvg"
    assert bars_of(block)["balanced accuracy", "FedProx"].texts[0] == "+10.00"


def test_many_settings_have_a_table_of_recall_and_bars_of_who_holds_the_classes():
    rows = [
        run("safari", 0, [0.9, 0.1 * q], **{"algorithm.q": q / 10}) | {"cell": str(q)} for q in range(1, 10)
    ]
    table, exposure, _ = class_blocks(Settings.of(pl.DataFrame(rows)))
    assert table.columns == ("q", "flu", "sepsis")
    assert [row[2].value for row in table.rows] == pytest.approx([10.0 * q for q in range(1, 10)])
    assert [bar.value for bar in exposure.groups[0].bars] == pytest.approx([90.0, 10.0])


def test_results_of_earlier_versions_have_a_page_without_classes_and_clients():
    new = (
        "recall",
        "class_precision",
        "classes",
        "exposure",
        "coverage",
        "balanced_accuracy",
        "worst_recall",
    )
    old = RESULTS.drop(*new, "worst_class", "confusion", "participants", "asked", "answered", "absent")
    assert class_blocks(Settings.of(old)) == []
    assert who_took_part(Settings.of(old)) == []
    assert {block.key for block in sweep_page("Old", old, [], "", {}).blocks} >= {"findings", "statistics"}


def test_runs_that_diverged_are_in_no_curve_and_no_class():
    broken = [row | ({"diverged_at": 1} if row["seed"] == 2 else {}) for row in COMPARED]
    classes, recall = class_blocks(Settings.of(pl.DataFrame(broken, infer_schema_length=None)))
    assert bars_of(classes)["sepsis", "SAFARI"].texts[0] == "56.00 ± 1.41"
    assert recall.lines[-1].mean[-1] == pytest.approx(56.0)


def test_a_class_without_test_samples_is_said_to_have_none():
    rows = [{**row, "recall": [0.9, None], "curve_recall": [[0.5, None], [0.9, None]]} for row in COMPARED]
    classes, _ = class_blocks(Settings.of(pl.DataFrame(rows)))
    assert bars_of(classes)["sepsis", "FedAvg"].texts[0] == "no samples"


def test_clients_are_shown_with_their_rounds_and_those_that_never_come_apart():
    (block,) = who_took_part(SETTINGS)
    assert [group.title for group in block.groups] == ["can take part", "never take part"]
    assert bars_of(block)["can take part", "ash"].texts == ("8", "7")
    assert bars_of(block)["never take part", "cedar"].texts == ("0", "0")
    assert "with SAFARI; mean over 3 seeds" in block.caption


def test_many_clients_are_counted_by_how_often_they_took_part():
    block = took_part([Took(str(number), number % 3, number % 3) for number in range(3 * MOST_NAMED)], "")
    (group,) = block.groups
    assert [(bar.label, bar.value) for bar in group.bars] == [("never", 40), ("1", 40), ("2", 40)]
