"""Wrong files of one's own: one line that names key, column and row, exit code 2, nothing written."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from refusals import assert_command_refused

SPEC = """
[data]
source = "patients.csv"
label = "diagnosis"
client = "hospital"
server = "centre.csv"
test = "test.csv"
[participation]
excluded = ["north"]
[train]
rounds = 2
"""


def table(samples):
    rows = np.arange(samples)
    return pl.DataFrame(
        {
            "age": 30.0 + rows,
            "pressure": 120.0 - rows % 7,
            "hospital": np.array(["harbour", "lake", "north"])[rows % 3],
            "diagnosis": np.array(["flu", "sepsis"])[rows // 3 % 2],
        }
    )


def cell(column, row, value):
    """The table with another value in one cell, as text."""
    place = pl.int_range(pl.len()) == row - 1
    return lambda frame: frame.with_columns(
        pl.when(place).then(pl.lit(value)).otherwise(pl.col(column).cast(pl.String)).alias(column)
    )


def column(name, values):
    return lambda frame: frame.with_columns(pl.lit(values).alias(name))


def without(*names):
    return lambda frame: frame.drop(*names)


TABLES = {
    "a text among numbers": (
        ("patients", cell("age", 17, "old")),
        "data.source = patients.csv: ",
        'column age, row 17 holds the text "old"; turn it into a number, or leave the column out with drop',
    ),
    "a column of texts": (
        ("patients", column("sex", "f")),
        "data.source = patients.csv: ",
        'holds the text "f"; turn it into a number, or leave the column out with drop = ["sex"]',
    ),
    "several columns of texts": (
        (
            "patients",
            lambda frame: frame.with_columns(sample=pl.lit("S1"), sex=pl.lit("f"), note=pl.lit("-")),
        ),
        "data.source = patients.csv: ",
        'column sample, row 1 holds the text "S1"; turn it into a number, or leave all columns of texts out '
        'with drop = ["sample", "sex"]',
    ),
    "a column of categories": (
        ("patients", lambda frame: frame.with_columns(bed=pl.col("hospital").str.slice(0, 1))),
        "data.source = patients.csv: ",
        'holds the text "h"; make a column of 0 and 1 of each of its 3 values (pandas.get_dummies), or leave',
    ),
    "numbers with a decimal comma": (
        ("patients", column("income", "12,5")),
        "data.source = patients.csv: ",
        'holds the text "12,5"; write numbers with a point, and with nothing between their digits, or leave',
    ),
    "a missing value, written as a dash": (
        ("patients", cell("pressure", 5, "-")),
        "data.source = patients.csv: ",
        "column pressure, row 5 has no value",
    ),
    "a column of dates": (
        ("patients", lambda frame: frame.with_columns(born=pl.lit("1990-02-03"))),
        "data.source = patients.csv: ",
        'row 1 holds the text "1990-02-03"; turn the date into a number, such as years, or leave',
    ),
    "a missing value": (
        ("patients", cell("pressure", 5, None)),
        "data.source = patients.csv: ",
        'column pressure, row 5 has no value; write missing = "mean"',
    ),
    "a missing value, written NA": (
        ("patients", cell("pressure", 5, "NA")),
        "data.source = patients.csv: ",
        "column pressure, row 5 has no value",
    ),
    "a missing value of the server's": (
        ("centre", cell("age", 2, "")),
        "data.server = centre.csv: ",
        "column age, row 2 has no value",
    ),
    "an infinite value": (
        ("patients", cell("age", 3, "inf")),
        "data.source = patients.csv: ",
        "column age, row 3 holds inf, which is not a finite number",
    ),
    "a value too large for float32": (
        ("test", cell("age", 4, "1e300")),
        "data.test = test.csv: ",
        "column age, row 4 holds 1e+300, which is not a finite number",
    ),
    "no label in a row": (
        ("patients", cell("diagnosis", 9, None)),
        "data.source = patients.csv: ",
        "column diagnosis, row 9 is empty; every sample needs a value there",
    ),
    "no client in a row": (
        ("patients", cell("hospital", 8, " ")),
        "data.source = patients.csv: ",
        "column hospital, row 8 is empty",
    ),
    "a label that only the test set has": (
        ("test", cell("diagnosis", 6, "covid")),
        "data.test = test.csv: ",
        'column diagnosis, row 6 has the label "covid", which no sample of patients.csv has; mend the row, '
        'or name all classes with labels = ["flu", "sepsis", "covid"]',
    ),
    "a label that only the server has": (
        ("centre", cell("diagnosis", 1, "Flu")),
        "data.server = centre.csv: ",
        'row 1 has the label "Flu", which no sample of patients.csv has',
    ),
    "one class only": (
        ("patients", column("diagnosis", "flu")),
        "data.label = diagnosis: ",
        'every row of patients.csv has the label "flu"; two classes are needed',
    ),
    "a label that is a measurement": (
        ("patients", lambda frame: frame.with_columns(diagnosis=pl.col("age") / 7)),
        "data.source = patients.csv: ",
        "column diagnosis, row 1 holds 4.285714285714286; 60 different values in 60 rows are measurements",
    ),
    "a server without a column": (
        ("centre", without("pressure")),
        "data.server = centre.csv: ",
        "lacks column pressure, which patients.csv has",
    ),
    "a server with another column": (
        ("centre", column("weight", 70.0)),
        "data.server = centre.csv: ",
        'has column weight, which patients.csv lacks; leave it out with drop = ["weight"]',
    ),
    "a test set without labels": (
        ("test", without("diagnosis")),
        "data.label = diagnosis: ",
        "unknown column of test.csv",
    ),
    "no row": (("patients", lambda frame: frame[:0]), "data.source = patients.csv: ", "has no row"),
    "no row of the server's": (
        ("centre", lambda frame: frame[:0]),
        "data.server = centre.csv: ",
        "has no row",
    ),
    "no feature": (
        ("patients", without("age", "pressure")),
        "data.source = patients.csv: ",
        "no column left",
    ),
}

FILES = {
    "a column twice": (
        lambda: Path("patients.csv").write_text(
            "age,age,hospital,diagnosis\n1,2,lake,flu\n2,3,lake,sepsis\n"
        ),
        "data.source = patients.csv: ",
        "has column age twice",
    ),
    "rows of different lengths": (
        lambda: Path("patients.csv").write_text("age,hospital,diagnosis\n1,lake,flu,7\n2,lake,sepsis\n"),
        "data.source = ",
        "cannot be read as csv",
    ),
    "a line of comment above the columns": (
        lambda: Path("patients.csv").write_text("# May 2024\n" + Path("patients.csv").read_text()),
        "data.source = ",
        "cannot be read as csv (a row has more values than the first line has names)",
    ),
    "another encoding": (
        lambda: Path("patients.csv").write_text(
            Path("patients.csv").read_text().replace("lake", "l\u00e4ke"), encoding="latin-1"
        ),
        "data.source = ",
        "it is not UTF-8; save it as such, in Excel as CSV UTF-8",
    ),
    "UTF-16": (
        lambda: Path("patients.csv").write_text(Path("patients.csv").read_text(), encoding="utf-16"),
        "data.source = ",
        "it is not UTF-8; save it as such, in Excel as CSV UTF-8",
    ),
    "a row number without a name": (
        lambda: Path("patients.csv").write_text(
            "".join(f",{line}\n" for line in Path("patients.csv").read_text().splitlines())
        ),
        "data.source = patients.csv: ",
        "has a column without a name; give it one (pandas writes such a column without index=False)",
    ),
    "an empty file": (lambda: Path("patients.csv").write_text(""), "data.source = ", "is empty"),
    "not a table": (
        lambda: Path("patients.csv").write_bytes(bytes(range(256)) * 9),
        "data.",
        "",
    ),
    "no file": (lambda: Path("patients.csv").unlink(), "data.source = ", "no such file"),
    "no file of the server's": (lambda: Path("centre.csv").unlink(), "data.server = ", "no such file"),
    "no test file": (lambda: Path("test.csv").unlink(), "data.test = ", "no such file"),
}

OVERRIDES = {
    "an unknown label": ("data.label=diagnose", "data.label = diagnose: ", "did you mean diagnosis?"),
    "an unknown client column": (
        "data.client=clinic",
        "data.client = clinic: ",
        "unknown column of patients.csv",
    ),
    "no column called client": ("data.client=true", "data.client = True: ", "has no column client"),
    "a column dropped that is not there": ("data.drop=['agee']", "data.drop = agee: ", "did you mean age?"),
    "columns dropped without a list": (
        "data.drop=age,pressure",
        "data.drop = age,pressure: ",
        'must be a list of texts, such as ["age", "pressure"]',
    ),
    "the label dropped": (
        "data.drop=['diagnosis']",
        "data.drop = diagnosis: ",
        "is the column of the labels",
    ),
    "the label as client": (
        "data.client=diagnosis",
        "data.client = diagnosis: ",
        "is the column of the labels",
    ),
    "an unknown client": (
        "participation.excluded=['nort']",
        "participation.excluded = nort: ",
        "unknown client; did you mean north? known are harbour, lake, north",
    ),
    "a client by a number too high": (
        "participation.excluded=[3]",
        "participation.excluded = 3: ",
        "clients are 0 to 2",
    ),
    "class weights of an unknown class": (
        "train.class_weights={sepsi = 5}",
        "train.class_weights.sepsi = 5.0: ",
        "unknown class; did you mean sepsis?",
    ),
    "an unknown rule for gaps": ("data.missing=median", "data.missing = median: ", "must be 'mean'"),
    "an unknown scale": ("data.scale=robust", "data.scale = robust: ", "must be 'standard' or 'none'"),
    "too few labels named": ("data.labels=['flu']", "data.labels = ", "must be two names or more"),
    "labels without one that occurs": (
        "data.labels=['flu', 'covid']",
        "data.source = patients.csv: ",
        'column diagnosis, row 4 holds "sepsis", which is none of labels: flu, covid',
    ),
    "a server for a named set": ("data.source=digits", "data.", "digits"),
    "an ending that is not read": (
        "data.source=patients.xlsx",
        "data.source = ",
        "a file (.csv, .tsv, .parquet",
    ),
    "scaled by a server without samples": (
        "data.server={samples = 0}",
        "data.scale = standard: ",
        'write scale = "none", or give the server samples',
    ),
    "a server of the population, too large": (
        "data.server={samples = 500}",
        "data.server.samples = 500",
        "has only",
    ),
}


@pytest.fixture
def hospitals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, samples in (("patients", 60), ("centre", 24), ("test", 30)):
        table(samples).write_csv(f"{name}.csv")
    Path("spec.toml").write_text(SPEC)
    return tmp_path


def assert_run_refused(message, allowed, *overrides):
    assert_command_refused(["run", "spec.toml", *overrides, "--out", "run"], message, allowed)


@pytest.mark.parametrize("case", TABLES)
def test_a_wrong_table_is_refused(hospitals, case):
    (name, change), message, allowed = TABLES[case]
    change(pl.read_csv(f"{name}.csv")).write_csv(f"{name}.csv")
    assert_run_refused(message, allowed)


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_is_refused(hospitals, case):
    change, message, allowed = FILES[case]
    change()
    assert_run_refused(message, allowed)


@pytest.mark.parametrize("case", OVERRIDES)
def test_a_wrong_key_is_refused(hospitals, case):
    override, message, allowed = OVERRIDES[case]
    assert_run_refused(message, allowed, override)


def test_a_partition_by_a_column_that_is_not_there_is_refused(hospitals):
    Path("spec.toml").write_text('[data]\nsource = "digits"\npartition = "column"\n')
    assert_run_refused("data.partition = column: ", "digits has no client column")


def test_a_packed_file_is_refused(hospitals):
    Path("patients.csv").rename("patients.csv.gz")
    Path("spec.toml").write_text(SPEC.replace("patients.csv", "patients.csv.gz"))
    assert_run_refused("data.source = ", "is compressed; unpack it first")


def test_samples_of_ones_own_need_a_word_on_the_servers(hospitals):
    Path("spec.toml").write_text(SPEC.replace('server = "centre.csv"\n', ""))
    assert_run_refused("data.server = (nothing): ", "the server's own labelled samples, or how many to draw")
