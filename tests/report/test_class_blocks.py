"""A sweep's page shows what accuracy hides: the class that is recognised least."""

import json

import polars as pl
import pytest

from safari.report.class_blocks import class_blocks, findings
from safari.report.sweep_page import sweep_page


def run(algorithm, seed, recall, accuracy=0.9):
    return {
        "cell": f"{algorithm}{seed}",
        "settings": json.dumps({"algorithm.name": algorithm, "train.seed": seed}),
        "seed": seed,
        "accuracy": accuracy + 0.001 * seed,
        "accuracy_round": accuracy,
        "balanced_accuracy": sum(recall) / 2,
        "worst_recall": min(recall),
        "accuracy_ceiling": 1.0,
        "diverged_at": None,
        "classes": ["flu", "sepsis"],
        "recall": recall,
        "exposure": [0.9, 0.1],
        "coverage": "1 of 3 clients never take part; they hold 90 % of sepsis.",
        "curve_round": [1, 2],
        "curve_accuracy": [0.5, accuracy],
        "curve_recall": [[0.5, 0.0], recall],
    }


ROWS = [run("fedavg", seed, [0.95, 0.05 + 0.01 * seed]) for seed in range(3)]
ROWS += [run("safari", seed, [0.94, 0.55 + 0.02 * seed]) for seed in range(3)]
RESULTS = pl.DataFrame(ROWS)


def test_the_page_shows_the_recall_of_every_class_and_who_holds_it():
    table, curves = class_blocks(RESULTS)
    assert table.columns == ("algorithm.name", "flu", "sepsis")
    shown = [[entry.text for entry in row] for row in table.rows]
    assert shown[0] == ["fedavg", "95.00 ± 0.00", "6.00 ± 1.00"]
    assert shown[1] == ["safari", "94.00 ± 0.00", "57.00 ± 2.00"]
    assert shown[2] == ["held by clients that come", "90", "10"]
    assert curves.title == "Recall of sepsis over the rounds"
    assert curves.lines[1].mean == pytest.approx((0.0, 57.0))


def test_findings_claim_a_difference_only_where_the_interval_leaves_zero_out():
    (text,) = findings(RESULTS)
    assert text.paragraphs[0].startswith("1 of 3 clients never take part")
    assert text.paragraphs[1] == (
        "safari against fedavg: no difference in accuracy that can be told, +0.0 points (+0.0 to +0.0)."
    )
    assert text.paragraphs[3].startswith("safari against fedavg: +51.0 points (")
    assert text.paragraphs[3].endswith(" of recall of the worst class.")


def test_results_of_earlier_versions_have_a_page_without_classes():
    old = RESULTS.drop("recall", "classes", "exposure", "coverage", "balanced_accuracy", "worst_recall")
    assert class_blocks(old) == []
    assert {block.key for block in sweep_page("Old", old, [], "", {}).blocks} >= {"state", "statistics"}


def test_a_class_without_test_samples_is_said_to_have_none():
    rows = [{**row, "recall": [0.9, None], "curve_recall": [[0.5, None], [0.9, None]]} for row in ROWS]
    table, _ = class_blocks(pl.DataFrame(rows))
    assert table.rows[0][2].text == "no samples"
