"""`safari report` on what `safari compare DIRECTORY DIRECTORY` made."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from safari.cli import app
from safari.cli.report import page_of

SPEC = """
[data.partition]
samples_per_client = 100
[data.server]
samples = 20
[participation]
excluded = 4
per_round = 3
[algorithm.server]
steps = 2
[train]
rounds = 4
"""


def call(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two runs side by side, and their summaries; the runs themselves are gone since."""
    folder = tmp_path_factory.mktemp("compared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "spec.toml").write_text(SPEC)
        call("run", "spec.toml", "algorithm.q=0.3", "--out", "one", "--quiet")
        call(
            "run",
            "spec.toml",
            "algorithm.name=fedavg",
            "participation.per_round=2",
            "--out",
            "two",
            "--quiet",
        )
        summaries = {
            name: json.loads((folder / name / "summary.json").read_text()) for name in ("one", "two")
        }
        call("compare", "one", "two", "--out", "both")
    for name in summaries:
        shutil.rmtree(folder / name)
    return folder / "both", summaries


def test_the_page_has_the_numbers_of_both_runs_and_where_their_specs_differ(compared):
    directory, summaries = compared
    blocks = {block.key: block for block in page_of(directory).blocks}
    table = blocks["runs"]
    for row, (name, summary) in zip(table.rows, summaries.items(), strict=True):
        shown = dict(zip(table.columns, row, strict=True))
        assert shown["run"].text == name
        assert shown["accuracy"].value == pytest.approx(100 * summary["accuracy"])
        assert shown["server rounds"].value == summary["server_rounds"]
        assert shown["MB up"].value == pytest.approx(summary["bytes_up"] / 1e6)
    assert [row[1].text for row in table.rows] == ["SAFARI", "FedAvg"]
    differing = {row[0].text: [entry.text for entry in row[1:]] for row in blocks["settings"].rows}
    assert differing["participation.per_round"] == ["3", "2"]
    assert differing["algorithm.name"] == ["safari", "fedavg"]
    assert not {"train.rounds", "train.seed", "versions.jax"} & set(differing)


def test_the_page_draws_a_line_a_run_without_a_band(compared):
    directory, summaries = compared
    (curves,) = (block for block in page_of(directory).blocks if block.key == "curves0")
    lines = [line for line in curves.lines if "ceiling" not in line.label]
    assert [line.label for line in lines] == ["one", "two"]
    for line, summary in zip(lines, summaries.values(), strict=True):
        assert line.mean[-1] == pytest.approx(100 * summary["accuracy"])
        assert line.low == line.mean == line.high


def test_the_command_writes_the_page(compared):
    directory, _ = compared
    call("report", directory)
    page = (directory / "report.html").read_text()
    assert "2 runs side by side" in page
    assert "2 finished runs, simulated or deployed" in page


def test_a_comparison_without_its_results_is_refused_in_one_line(compared, tmp_path):
    shutil.copy(compared[0] / "spec.toml", tmp_path)
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert done.output == f"safari: directory = {tmp_path}: has no results.parquet; compare the runs again\n"
