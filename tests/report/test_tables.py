"""The tables of the terminal say what a ceiling of 100 % would hide."""

import io

import polars as pl
from rich.console import Console

from safari.report.metric_names import ACCURACY
from safari.report.tables import comparison_table, exposure_line


def shown(ceilings):
    columns = ("accuracy", "accuracy_round", "bytes_up")
    rows = [
        {"algorithm": name, "runs": 1, "accuracy_ceiling_mean": ceiling, "accuracy_ceiling_std": None}
        | {f"{one}_mean": 0.5 for one in columns}
        | {f"{one}_std": None for one in columns}
        for name, ceiling in zip(("fedavg", "safari"), ceilings, strict=True)
    ]
    console = Console(file=io.StringIO(), width=200)
    console.print(comparison_table(pl.DataFrame(rows), [ACCURACY]))
    return console.file.getvalue()


def test_a_ceiling_stands_in_the_table_where_it_bounds_something():
    assert "client ceiling" in shown([0.6, 0.6])
    assert "client ceiling" in shown([0.6, 1.0])
    assert "client ceiling" not in shown([1.0, 1.0])


def runs(*exposures):
    classes = [f"class {number}" for number in range(len(exposures[0]))]
    return pl.DataFrame([{"classes": classes, "exposure": list(one)} for one in exposures])


def test_classes_that_hardly_anyone_who_comes_holds_are_named_the_rarest_first():
    line = exposure_line(runs([0.3, 1.0, 0.0], [0.3, 1.0, 0.0]))
    expected = "class 2 0.00 %, class 0 30.00 %."
    assert line == f"Share of the training samples that clients who can come hold: {expected}"


def test_of_many_such_classes_five_are_named():
    assert exposure_line(runs([0.01 * number for number in range(8)])).endswith(
        "class 4 4.00 % and 3 classes more."
    )


def test_nothing_is_said_where_runs_differ_or_all_classes_are_there():
    assert exposure_line(runs([0.3, 1.0], [0.4, 1.0])) is None
    assert exposure_line(runs([0.5, 1.0])) is None
    assert exposure_line(pl.DataFrame({"accuracy": [0.5]})) is None
