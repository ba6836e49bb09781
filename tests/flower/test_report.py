"""`safari report` on the state of a fleet, while it goes on and afterwards."""

import numpy as np
import pytest
from flwr.app import MetricRecord
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start
from typer.testing import CliRunner

from safari.cli import app
from safari.cli.report import page_of
from safari.flower import SafariStrategy

NAMES = ["ash", "birch", "cedar", "dover", "elm"]
PLANNED, DONE = 12, 9


class Killed(Exception):
    """The server's process is gone."""


def spoil(client, round, arrays, metrics):
    if client == 1:
        arrays = {name: np.float32(1e6) + array for name, array in arrays.items()}
    if client == 2:
        raise MemoryError("no memory left")
    return arrays, metrics


def carry_out(path, until):
    """A fleet of five, of whom one is rejected, one fails and one never comes."""

    def evaluate(round, arrays):
        if round > until:
            raise Killed
        return MetricRecord({"accuracy": round / 100, "loss": 1.0, "recall": [0.9, round / 200]})

    made = SafariStrategy(
        q=0.7,
        server_step=server_step,
        fleet=NAMES,
        round_deadline=0.5,
        start_deadline=0.0,
        checkpoint=path,
    )
    made.start(LocalGrid(make_app(spoil), nodes(4)), start(), num_rounds=PLANNED, evaluate_fn=evaluate)


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    path = tmp_path_factory.mktemp("fleet") / "state"
    with pytest.raises(Killed):
        carry_out(path, DONE)
    return path


def blocks(path):
    return {block.key: block for block in page_of(path).blocks}


def test_the_page_of_an_unfinished_fleet_says_how_far_it_is_and_loads_itself_anew(unfinished):
    page = page_of(unfinished)
    assert page.refresh
    lead = blocks(unfinished)["findings"].lead
    assert lead.startswith(f"{DONE} of {PLANNED} rounds are done; the model that would be delivered now")
    kinds = blocks(unfinished)["kinds"].counts
    assert sum(kinds.values()) == DONE
    accuracy = blocks(unfinished)["curves"].lines[0]
    assert accuracy.mean == pytest.approx(range(1, DONE + 1))


def test_the_page_says_which_class_is_recognised_least(unfinished):
    found = blocks(unfinished)
    curves = {line.label: line.mean for line in found["recall"].lines}
    assert curves["0"] == pytest.approx([90] * DONE)
    least = f"{curves['1'][-1]:.1f} %"
    assert 0 < curves["1"][-1] <= DONE / 2
    assert f", and {least} of class 1, which it recognises least" in found["findings"].lead
    numbers = {number.note: number.value for number in found["findings"].numbers}
    assert numbers["the class recognised least"] == least


def test_the_page_says_who_was_rejected_or_failed_or_never_came_and_why(unfinished):
    found = blocks(unfinished)
    client_rounds = found["kinds"].counts["client"]
    points = "\n".join(found["findings"].points)
    assert "3 of 5 clients have not taken part: birch, cedar, elm (never connected)" in points
    assert f"Rejected {client_rounds} times: birch ({client_rounds}); the last in round" in points
    assert "times the median" in points
    assert f"Failed {client_rounds} times: cedar ({client_rounds})" in points
    assert "no memory left" in points
    answered = {bar.label: bar.value for group in found["clients"].groups for bar in group.bars}
    assert answered == {**dict.fromkeys(NAMES, 0), "ash": client_rounds, "dover": client_rounds}
    rows = {row[0].text: [entry.text for entry in row[1:]] for row in found["replies"].rows}
    assert rows["birch"][:3] == [str(client_rounds), "", "none"]
    share, reply_time = rows["ash"][-2:]
    assert share == "50.0 %"
    assert 0 <= float(reply_time) < 0.5
    assert {row[1].text for row in found["events"].rows} == {"birch", "cedar"}


def test_a_finished_fleet_has_a_page_that_stays_as_it_is(unfinished):
    carry_out(unfinished, PLANNED)
    page = page_of(unfinished)
    assert page.refresh is None
    assert blocks(unfinished)["findings"].lead.startswith(
        f"All {PLANNED} rounds are done; the delivered model"
    )


def test_before_the_first_round_is_saved_there_is_no_page(tmp_path):
    with pytest.raises(Killed):
        carry_out(tmp_path / "state", 0)
    (tmp_path / "state" / "checkpoint" / "journal.jsonl").touch()
    done = CliRunner().invoke(app, ["report", str(tmp_path / "state")])
    assert done.exit_code == 2
    assert "its server has not saved a round yet" in done.output
    assert not (tmp_path / "state" / "report.html").exists()
