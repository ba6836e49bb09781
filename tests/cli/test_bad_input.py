"""Bad input: one line that names the key and what is allowed, exit code 2, nothing written."""

import gzip
import os
import struct
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from refusals import assert_command_refused
from safari.cli import app
from safari.experiment.directory import Directory

SPEC = """
[data.partition]
samples_per_client = 100
[participation]
excluded = 4
per_round = 5
[train]
rounds = 3
"""

BROKEN_MODEL = """
import safari
class Broken(safari.Model):
    def init(self, key, shape, classes):
        return {"weight": 1 / 0}
    def apply(self, params, x):
        return x
"""

OVERRIDES = {
    "unknown table": ("dta.clients=5", "dta", "unknown key; did you mean data?"),
    "unknown key": ("algorithm.qq=1", "algorithm.qq", "unknown key; did you mean q?"),
    "unknown nested key": ("algorithm.clients.rate=1", "algorithm.clients.rate", "unknown key"),
    "key of another algorithm": ("algorithm.clients.proximal=1", "algorithm.clients.proximal", "unknown key"),
    "wrong type": ("algorithm.q=high", "algorithm.q", "must be a number"),
    "number for a text": ("data.source=5", "data.source", "must be a text"),
    "fraction for a count": ("train.rounds=1.5", "train.rounds", "must be a whole number"),
    "truth for a count": ("train.rounds=true", "train.rounds", "must be a whole number"),
    "text for a table": ("algorithm=safari", "algorithm", "must be a table"),
    "override without value": ("algorithm.q", "override", "must be key=value"),
    "override through a value": ("train.seed=1", "train.seed", None),
    "q above 1": ("algorithm.q=1.5", "algorithm.q", "must be between 0 and 1"),
    "q is nan": ("algorithm.q=nan", "algorithm.q", "must be between 0 and 1"),
    "q below 0": ("algorithm.q=-0.1", "algorithm.q", "must be between 0 and 1"),
    "m > M - s": (
        "participation.per_round=7",
        "participation.per_round",
        "only 6 of 10 clients ever take part",
    ),
    "m = 0": ("participation.per_round=0", "participation.per_round", "at least 1"),
    "s = M": ("participation.excluded=10", "participation.excluded", "leaves none of the 10 clients"),
    "s > M": ("participation.excluded=12", "participation.excluded", "leaves none of the 10 clients"),
    "s < 0": ("participation.excluded=-1", "participation.excluded", "must be 0 or more"),
    "unknown excluded client": (
        "participation.excluded=[10]",
        "participation.excluded",
        "clients are 0 to 9",
    ),
    "dropout above 1": ("participation.dropout=2", "participation.dropout", "must be between 0 and 1"),
    "p > classes": (
        "data.partition.classes_per_client=11",
        "data.partition.classes_per_client",
        "the data has only 10 classes",
    ),
    "p = 0": ("data.partition.classes_per_client=0", "data.partition.classes_per_client", "at least 1"),
    "no clients": ("data.partition.clients=0", "data.partition.clients", "at least 1"),
    "more clients than samples": ("data.partition.clients=5000", "data.partition.clients", "there are only"),
    "clients too large": (
        "data.partition.samples_per_client=5000",
        "data.partition.samples_per_client",
        "at the most",
    ),
    "n_T = 0 with safari": ("data.server.samples=0", "data.server.samples", "it needs at least 1"),
    "n_T larger than the data": ("data.server.samples=99999", "data.server.samples", "has only 1442 samples"),
    "n_T takes everything": ("data.server.samples=1442", "data.server.samples", "leaves no sample"),
    "unknown source": ("data.source=mnits", "data.source", "must be one of digits, mnist"),
    "unknown partition": ("data.partition=random", "data.partition.name", "known are classes, dirichlet"),
    "no client column": ("data.partition=column", "data.partition", "has no client column"),
    "alpha = 0": (
        "data.partition=dirichlet data.partition.alpha=0",
        "data.partition.alpha",
        "must be above 0",
    ),
    "missing class unknown": (
        "data.server.missing_classes=[12]",
        "data.server.missing_classes",
        "from 0 to 9",
    ),
    "missing folder": ("data.source=mnist data.folder=nowhere", "data.folder", "no such folder"),
    "missing file": ("data.source=nowhere.npz", "data.source", "no such file"),
    "unknown model": ("model.name=resnet", "model.name", "known are logistic, mlp, cnn"),
    "own model missing": ("model.name=nowhere:Net", "model.name", "cannot be imported"),
    "own model is no model": ("model.name=json:JSONDecoder", "model.name", "not a subclass of safari.Model"),
    "no hidden units": ("model.name=mlp model.hidden=[0]", "model.hidden", "at least 1"),
    "unknown algorithm": (
        "algorithm.name=fedavgg",
        "algorithm.name",
        "did you mean fedavg? known are safari",
    ),
    "unknown client algorithm": (
        "algorithm.clients.name=fedsgd",
        "algorithm.clients.name",
        "unknown name; did you mean",
    ),
    "rate = 0": ("algorithm.clients.local_rate=0", "algorithm.clients.local_rate", "must be above 0"),
    "rate is infinite": ("algorithm.server.rate=inf", "algorithm.server.rate", "must be above 0"),
    "no batch": ("algorithm.clients.batch_size=0", "algorithm.clients.batch_size", "at least 1"),
    "unknown weights": ("algorithm.clients.weights=loss", "algorithm.clients.weights", "'equal' or 'size'"),
    "unknown steps": ("algorithm.server.steps=all", "algorithm.server.steps", "'epoch' or 'match'"),
    "unknown optimiser": (
        "algorithm.clients.name=fedopt algorithm.clients.optimizer=adamm",
        "algorithm.clients.optimizer",
        "must be an optimiser of optax",
    ),
    "no rounds": ("train.rounds=0", "train.rounds", "at least 1"),
    "seed too large": ("train.seed=99999999999999999999", "train.seed", "from 0 to 2147483647"),
    "data seed too large": ("data.seed=99999999999999999999", "data.seed", "from 0 to 2147483647"),
    "kernel larger than the image": (
        "model.name=cnn model.kernel=50",
        "model.kernel",
        "larger than the images",
    ),
    "server as clients": (
        "algorithm.clients.name=sgd algorithm.clients={name='sgd'}",
        "algorithm.clients",
        "must be an algorithm in which clients train",
    ),
    "key of another partition": ("data.partition.alpha=0.3", "data.partition.alpha", "unknown key"),
    "key of before": ("data.server_samples=5", "data.server_samples", "is data.server.samples now"),
    "own model that fails": (
        "model.name=own_model:Broken",
        "model.name",
        "fails (ZeroDivisionError: division by zero)",
    ),
    "negative seed": ("train.seed=-1", "train.seed", "from 0 to 2147483647"),
    "unknown availability": (
        "participation.availability.name=sometimes",
        "participation.availability.name",
        "known are always, bernoulli",
    ),
    "too few rates": (
        "participation.availability.name=bernoulli participation.availability.rate=[0.5]",
        "participation.availability.rate",
        "needs one rate for each of 10 clients",
    ),
    "trace without a file": (
        "participation.availability.name=trace",
        "participation.availability.file",
        "must be given: a text",
    ),
}
OVERRIDES["override through a value"] = (
    "train.rounds.high=1",
    "train.rounds",
    "must be a whole number",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(SPEC + "[algorithm]\nq = 0.5\n")
    (tmp_path / "own_model.py").write_text(BROKEN_MODEL)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def assert_refused(arguments: list[str], key: str, allowed: str) -> None:
    assert_command_refused(arguments, f"{key} = ", allowed)


@pytest.mark.parametrize("case", OVERRIDES)
def test_bad_values_are_refused(folder, case):
    overrides, key, allowed = OVERRIDES[case]
    assert_refused(["run", "spec.toml", *overrides.split(" "), "--out", "run"], key, allowed)


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


X, Y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
NAN = np.where(np.arange(180).reshape(60, 3) == 7, np.nan, X)
OWN_FILES = {
    "no labels": (npz(x=X), "data.source", "lacks y"),
    "unknown array": (npz(x=X, y=Y, z=Y), "data.source", "known are x, y"),
    "NaN pixels": (npz(x=NAN, y=Y), "data.x", "must be finite"),
    "negative labels": (npz(x=X, y=Y - 1), "data.y", "none may be negative"),
    "labels between whole numbers": (npz(x=X, y=Y + 0.5), "data.y", "must hold whole numbers"),
    "huge labels": (npz(x=X, y=Y * 1_000_000), "data.y", "number the classes 0, 1, 2, ..."),
    "a class without samples": (npz(x=X, y=np.where(Y == 1, 5, Y)), "data.source", "without gaps"),
    "fewer labels than samples": (npz(x=X, y=Y[:50]), "data.y", "one label for each of the 60 samples"),
    "samples without features": (npz(x=X[:, 0], y=Y), "data.x", "samples first, then their features"),
    "empty client": (
        npz(x=X, y=Y, client=np.where(Y == 1, 2, Y)),
        "data.client",
        "every client needs a sample",
    ),
    "client column too short": (npz(x=X, y=Y, client=Y[:9]), "data.client", "one whole number for each"),
    "test labels missing": (npz(x=X, y=Y, x_test=X), "data.source", "needs x_test and y_test"),
    "test samples of another shape": (
        npz(x=X, y=Y, x_test=X[:, :2], y_test=Y),
        "data.x_test",
        "must hold samples",
    ),
    "not a zip file": (lambda path: path.write_bytes(b"nothing"), "data.source", "cannot be read as .npz"),
}


@pytest.mark.parametrize("case", OWN_FILES)
def test_bad_files_of_ones_own_are_refused(folder, case):
    write, key, allowed = OWN_FILES[case]
    write(folder / "own.npz")
    arguments = ["run", "spec.toml", "data.source=own.npz", "data.server.samples=5", "--out", "run"]
    assert_refused(arguments, key, allowed)


def test_too_many_samples_for_the_server_can_empty_a_client(folder):
    np.savez(folder / "own.npz", x=X, y=Y, client=np.where(np.arange(60) == 0, 1, 0))
    arguments = [
        "run",
        "spec.toml",
        "data.source=own.npz",
        "data.partition=column",
        "participation.excluded=0",
    ]
    for seed in range(20):
        if (
            "would hold no sample"
            in CliRunner()
            .invoke(
                app,
                [
                    *arguments,
                    "data.server.samples=40",
                    f"data.seed={seed}",
                    "participation.per_round=1",
                    "--out",
                    f"run{seed}",
                ],
            )
            .stderr
        ):
            return
    pytest.fail("no draw took the only sample of client 1")


def write_idx(path, content):
    path.write_bytes(gzip.compress(content))


def broken_mnist(folder, images):
    for stem in ("train", "t10k"):
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", struct.pack(">4BI", 0, 0, 8, 1, 4) + bytes(4))
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(images)


IMAGES = gzip.compress(struct.pack(">4BIII", 0, 0, 8, 3, 4, 2, 2) + bytes(16))
PUBLISHED = {
    "truncated .gz": (IMAGES[:-12], "cannot be read"),
    "not gzip": (b"plain text", "cannot be read"),
    "too few pixels": (gzip.compress(struct.pack(">4BIII", 0, 0, 8, 3, 4, 2, 2) + bytes(9)), "is damaged"),
    "another format": (gzip.compress(b"text that was zipped"), "is not an IDX file"),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_broken_published_files_are_refused(folder, case):
    images, allowed = PUBLISHED[case]
    broken_mnist(folder, images)
    assert_refused(
        ["run", "spec.toml", "data.source=mnist", "data.folder=.", "--out", "run"], "data.folder", allowed
    )


def test_a_folder_without_the_files_is_refused(folder):
    arguments = ["run", "spec.toml", "data.source=cifar10", "data.folder=.", "--out", "run"]
    assert_refused(arguments, "data.folder", "holds no cifar10")


def test_a_set_that_is_not_here_says_how_to_get_it(folder, monkeypatch):
    monkeypatch.delenv("SAFARI_DATA", raising=False)
    monkeypatch.setenv("SAFARI_CACHE", str(folder / "empty"))
    arguments = ["run", "spec.toml", "data.source=mnist", "--out", "run"]
    assert_refused(arguments, "data.source", "run `safari data fetch mnist`")


TRACES = {
    "unknown client": ("round,client\n1,0\n2,11\n", "round 2 names client 11; clients are 0 to 9"),
    "no header": ("1,0\n2,1\n", "the first line must be round,client"),
    "no number of a round": ("round,client\nfirst,1\n", "line 2 is not a round and a client"),
    "a name": ("round,client\n1,north\n", "round 1 names client north; clients are 0 to 9"),
    "round 0": ("round,client\n0,1\n", "rounds count from 1"),
    "empty": ("round,client\n", "names no client"),
}


@pytest.mark.parametrize("case", TRACES)
def test_bad_traces_are_refused(folder, case):
    content, allowed = TRACES[case]
    (folder / "trace.csv").write_text(content)
    name = "participation.availability"
    arguments = ["run", "spec.toml", f"{name}.name=trace", f"{name}.file=trace.csv", "--out", "run"]
    assert_refused(arguments, "participation.availability.file", allowed)


def test_a_missing_spec_is_refused(folder):
    assert_refused(["run", "nowhere.toml", "--out", "run"], "spec", "no such file")


def test_a_broken_spec_is_refused(folder):
    (folder / "spec.toml").write_text("[data\n")
    assert_refused(["run", "spec.toml", "--out", "run"], "spec", "is not a TOML file")


def test_an_existing_directory_is_refused(folder):
    (folder / "run").mkdir()
    assert_refused(["run", "spec.toml", "--out", "run"], "--out", "exists; choose another")


def test_a_directory_that_cannot_be_written_is_refused(folder):
    (folder / "file").write_text("")
    assert_refused(["run", "spec.toml", "--out", "file/run"], "--out", "cannot be written")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_refused(folder):
    (folder / "closed").mkdir(mode=0o555)
    assert_refused(["run", "spec.toml", "--out", "closed/run"], "--out", "cannot be written")


def test_resuming_what_is_no_run_is_refused(folder):
    assert_refused(["run", "--resume", "nowhere"], "--resume", "is not a run directory")


def test_resuming_a_comparison_as_a_run_is_refused(folder):
    Directory.create(folder / "both", "[compare]\nseeds = 2\n").close()
    assert_refused(["run", "--resume", "both"], "--resume", "use `safari compare --resume`")


def test_neither_spec_nor_resume_is_refused(folder):
    assert_refused(["run"], "run", "needs a SPEC, or --resume DIRECTORY, not both")


def test_both_out_and_resume_are_refused(folder):
    assert_refused(["run", "--resume", "a", "--out", "b"], "--out", "cannot go with --resume")


COMPARE = {
    "unknown algorithm": (["--algorithms", "fedavg,magic"], "--algorithms", "known are safari"),
    "no algorithm": (["--algorithms", ","], "--algorithms", "at least one"),
    "the same twice": (["--algorithms", "fedavg,fedavg"], "--algorithms", "each once"),
    "no seeds": (["--seeds", "0"], "--seeds", "at least 1"),
}


@pytest.mark.parametrize("case", COMPARE)
def test_bad_comparisons_are_refused(folder, case):
    options, key, allowed = COMPARE[case]
    assert_refused(["compare", "spec.toml", *options, "--out", "run"], key, allowed)


def test_fetching_an_unknown_set_is_refused(folder):
    assert_refused(["data", "fetch", "imagenet"], "name", "must be one of digits, mnist")
