"""`safari algorithms`: every method is in it, and says what it needs and costs."""

import json

import pytest
from typer.testing import CliRunner

from safari.cli.application import app
from safari.experiment.methods import all_methods, method
from safari.registry import ALGORITHMS
from safari.report.methods import plain

OWN = '''import safari


class Half(safari.FedProx):
    r"""Half of $\\eta \\nabla F$.

    Args:
        share: how much of it.
    """

    share: float = 0.5
'''


def asked(*words):
    return CliRunner().invoke(app, ["algorithms", *words], env={"COLUMNS": "150"})


def test_every_algorithm_is_listed_once_under_its_idea():
    named = [facts["name"] for _, found in all_methods() for facts in found]
    assert sorted(named) == sorted(ALGORITHMS)
    listed = asked().output
    for idea, found in all_methods():
        assert all(idea == facts["idea"] for facts in found)
        assert all(facts["name"] in listed for facts in found)


def test_the_list_is_json_too():
    found = {facts["name"]: facts for facts in json.loads(asked("--json").output)}
    assert set(found) == set(ALGORITHMS)
    assert found["scaffold"]["paper"]["year"] == 2020
    assert not found["fltrust"]["passes_ceiling"]
    assert found["feddu"]["label_counts"]


def test_most_methods_have_a_paper():
    without = {facts["name"] for _, found in all_methods() for facts in found if facts["paper"] is None}
    assert without == {"server-only", "sgd", "stages", "fine-tune"}


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_one_method_shows_its_mathematics_and_parameters(name):
    facts = method(name)
    assert facts["text"]
    assert not set("\\$") & set(plain(facts["text"])), "a formula that the terminal cannot show"
    assert all(key["meaning"] for key in facts["parameters"])


def test_one_method_as_text_and_as_json():
    shown = asked("feddu").output
    assert "safari.FedDU" in shown
    assert "label counts" in shown
    assert "(1 - acc) δ^t" in shown
    assert json.loads(asked("feddu", "--json").output)["parameters"][-1]["name"] == "decay"


def test_a_class_of_the_users_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half.py").write_text(OWN)
    shown = asked("half.py:Half").output
    assert "Half of η∇F." in shown
    assert "how much of it." in shown
    assert "Li et al." not in shown, "the paper of the class that it extends is not its own"
    assert json.loads(asked("half.py:Half", "--json").output)["paper"] is None


@pytest.mark.parametrize("name", ["fedagv", "half.py:None", "json:JSONDecoder"])
def test_what_is_no_algorithm_is_refused_in_one_line(name):
    done = asked(name)
    assert done.exit_code == 2
    assert done.stderr.startswith("safari: name = ")
    assert len(done.stderr.splitlines()) == 1
