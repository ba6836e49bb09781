"""Six hospitals, three never started: each account reads its own file alone; the run is the simulation."""

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fleet_processes import ROOT
from written_commands import Person, Shell, binaries_for_all, blocks, free_port

import safari
from safari.engine.training import Training
from safari.experiment.spec import load_spec

NUMBER = re.compile(r"\d+\.?\d*")
EXAMPLE = ROOT / "examples" / "flower" / "hospitals"
PRESENT, ABSENT = ("ashford", "dover", "hazel"), ("harbour", "north", "summit")
SHARED = "/srv/ashford"
"""What stands in a command that every hospital runs, with its own name."""


@pytest.fixture
def land():
    """A folder that every account may look into, unlike pytest's own."""
    place = Path(tempfile.mkdtemp(prefix="hospitals-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def people(land: Path) -> dict[str, Person]:
    """An account for the centre and for each hospital, at home in a folder that is closed to all others."""
    names = ("centre", *PRESENT, *ABSENT)
    accounts = sorted(one.pw_uid for one in pwd.getpwall() if 0 < one.pw_uid < 1000)
    if len(accounts) < len(names):
        pytest.skip(f"this system has {len(accounts)} accounts of its own; {len(names)} are needed")
    found = {}
    for name, uid in zip(names, accounts, strict=False):
        home = land / "homes" / name
        home.mkdir(parents=True)
        os.chown(home, uid, uid)
        home.chmod(0o700)
        found[name] = Person(home, uid)
    return found


def given_away(path: Path, owner: Person) -> None:
    for one in (path, *path.rglob("*")):
        os.chown(one, owner.uid, owner.uid)


def may_read(person: Person, path: Path) -> bool:
    done = subprocess.run(["cat", path], capture_output=True, **person.rights)
    return done.returncode == 0


def simulated(land: Path):
    """The same on all the files at once, which only this test has."""
    pooled = land / "pooled"
    pooled.mkdir(mode=0o700)
    for name in (*PRESENT, *ABSENT):
        shutil.copy(land / "srv" / name / "patients.csv", pooled / f"{name}.csv")
    text = (EXAMPLE / "hospitals.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("client_names")]
    text = "\n".join(lines).replace('source = "nodes"', f'source = "{pooled}"')
    (land / "work" / "simulated.toml").write_text(text)
    training = Training(
        load_spec(land / "work" / "simulated.toml", [f"participation.excluded={list(ABSENT)}"]).prepare()
    )
    while not training.finished:
        training.advance()
    return training.result()


@pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="only root can give each hospital an account"
)
def test_hospitals_with_a_file_each_train_what_the_simulator_trains(land):
    accounts = people(land)
    centre, srv, work = accounts["centre"], land / "srv", land / "work"
    for folder in (work, srv, srv / "public"):
        folder.mkdir()
        os.chown(folder, centre.uid, centre.uid)
    (srv / "public").chmod(0o1777)
    for file in ("hospitals.toml", "make_data.py"):
        shutil.copy(EXAMPLE / file, work)
    shell = Shell(
        land, {"/srv": str(srv), "SERVER": "localhost", "0.0.0.0": "127.0.0.1", "8000": str(free_port())},
        binaries_for_all(land),
    )  # fmt: skip
    try:
        for block in blocks(EXAMPLE / "README.md"):
            each = any(SHARED in command for command in block)
            for name in PRESENT if each else ("centre",):
                swaps = {SHARED: f"/srv/{name}", "ashford": name} if each else {}
                folder = srv / name if each else work
                for command in block:
                    said = shell.run(command, accounts[name], folder, **swaps)
                    if command.startswith("safari evaluate"):
                        shown = said
            if block == ["python make_data.py"]:
                for name in (*PRESENT, *ABSENT):
                    (work / name).rename(srv / name)
                    given_away(srv / name, accounts[name])
            elif (work / "tls" / "ca.crt").exists():
                shutil.copy(work / "tls" / "ca.crt", srv / "public")
        nodes = [one for one in shell.ran if one.startswith("flower-supernode")]
        assert len(nodes) == len(PRESENT)
    finally:
        shell.stop()
    nobody_else_can_read(srv, accounts)
    the_run_is_the_simulation(srv / "centre-state", simulated(land))
    written = re.search(r"```text\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)[1]
    assert NUMBER.sub("", written).split() == NUMBER.sub("", shown).split()
    for ours, theirs in zip(NUMBER.findall(shown), NUMBER.findall(written), strict=True):
        assert float(ours) == pytest.approx(float(theirs), abs=10 if "." not in theirs else 2.5)
    patients = pl.read_csv(work / "predictions.csv")
    assert set(patients["predicted"]) == {"flu", "pneumonia", "sepsis"}


def nobody_else_can_read(srv: Path, accounts: dict[str, Person]) -> None:
    for name in (*PRESENT, *ABSENT):
        file = srv / name / "patients.csv"
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        readers = [who for who, person in accounts.items() if may_read(person, file)]
        assert readers == [name]
    assert [
        who
        for who, person in accounts.items()
        if may_read(person, srv.parent / "work" / "centre" / "own.csv")
    ] == ["centre"]


def the_run_is_the_simulation(state: Path, expected) -> None:
    model, summary = safari.load(state), json.loads((state / "summary.json").read_text())
    for name, array in expected.params.items():
        np.testing.assert_allclose(model.params[name], array, atol=1e-5)
    history = pl.read_parquet(state / "metrics.parquet")
    for column in ("kind", "cohort", "reported"):
        assert history[column].to_list() == expected.history[column].to_list()
    assert "client" in history["kind"]
    assert model.labels == ("flu", "pneumonia", "sepsis")
    assert all(len(recalls) == 3 for recalls in history["recall"])
    assert summary["recall"]["sepsis"] == pytest.approx(expected.metrics.recall[2], abs=0.01)
    absent = [row["name"] for row in summary["participation"] if not row["answered"]]
    assert sorted(absent) == sorted(ABSENT)
