"""Folders and arrays that hold no samples: one line that says what is wrong and what to write."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from patients import patients

import safari
from refusals import assert_refused


def folder_of(write):
    def make():
        Path("own").mkdir()
        write(Path("own"))

    return make


ILL = patients(9).drop("hospital")
FOLDERS = {
    "an empty folder": (lambda own: None, "source = ", "holds no file that can be read"),
    "a client whose file is empty": (
        lambda own: (
            ILL.write_csv(own / "a.csv"),
            (own / "b.csv").write_text("age,diagnosis\n"),
        ),
        "source = own/b.csv: ",
        "has no row",
    ),
    "a client without a column": (
        lambda own: (ILL.write_csv(own / "a.csv"), ILL.drop("age").write_csv(own / "b.csv")),
        "source = own/b.csv: ",
        "lacks column age",
    ),
    "a column of clients that one file lacks": (
        lambda own: (
            ILL.write_csv(own / "a.csv"),
            ILL.with_columns(ward=pl.lit("w")).write_csv(own / "b.csv"),
        ),
        "client = ward: ",
        "is a column that not all files of own have; each needs it, or none if each file is a client",
    ),
    "an image that is none": (
        lambda own: [
            (own / kind).mkdir() or (own / kind / "1.png").write_text("x") for kind in ("cat", "dog")
        ],
        "source = ",
        "cannot be read as an image",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_wrong_folder_is_refused(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    write, key, allowed = FOLDERS[case]
    folder_of(write)()
    client = "ward" if "column of clients" in case else None
    assert_refused(lambda: safari.read("own", label="diagnosis", client=client), key, allowed)


X, Y = np.arange(24.0).reshape(12, 2), np.arange(12) % 2
CALLS = {
    "no labels for an array": (lambda: safari.read(X), "label = None: ", "must be the labels"),
    "too few labels": (
        lambda: safari.read(X, Y[:5]),
        "label = array of shape (5,)",
        "one label for each of the 12",
    ),
    "too few clients": (lambda: safari.read(X, Y, Y[:5]), "client = ", "one client for each of the 12"),
    "NaN in an array": (lambda: safari.read(X * np.nan, Y), "x = ", "must be finite"),
    "names for other columns": (
        lambda: safari.read(X, Y, features=["a"]),
        "features = ",
        "each of the 2 columns",
    ),
    "not samples": (
        lambda: safari.read(7),
        "data = int: ",
        "must be a path, a frame, an array or a data set",
    ),
    "a list for a label": (
        lambda: safari.read(patients(9), ["diagnosis"]),
        "label = ",
        "the name of a column",
    ),
    "a server for a Dataset": (
        lambda: safari.federate(safari.Dataset(X, Y, X, Y), server=safari.read(X, Y)),
        "server = ",
        "go with samples that safari.read has read",
    ),
    "a server of another shape": (
        lambda: safari.federate(safari.read(X, Y), server=safari.read(X[:, :1], Y)),
        "server = the arrays: ",
        "holds samples of shape (1,); those of the arrays are (2,)",
    ),
    "no word on the server's samples": (
        lambda: safari.federate(safari.read(X, Y)),
        "server = None: ",
        "must be given for samples of your own",
    ),
    "no value of a feature at the server": (
        lambda: safari.federate(
            safari.read(X, Y, missing="mean"),
            server=safari.read(np.full_like(X, np.nan), Y, missing="mean"),
        ),
        "missing = mean: ",
        "no sample of the server's has a value of feature number 0",
    ),
}


@pytest.mark.filterwarnings("ignore:.* no value in any of its:safari.errors.InputWarning")
@pytest.mark.parametrize("case", CALLS)
def test_a_wrong_call_is_refused_in_one_line(case):
    call, key, allowed = CALLS[case]
    assert_refused(call, key, allowed)
