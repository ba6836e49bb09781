"""Pictures are drawn for every kind of run."""

import numpy as np
import polars as pl
import pytest

import safari
from safari.experiment.compare import COLUMNS, Compared, tabulate
from safari.report.curves import comparison_figure, draw_comparison, draw_run

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("algorithm", [safari.FedAvg(), safari.ServerSGD(), safari.Safari(q=0.5)])
@pytest.mark.parametrize("every", [1, 4])
def test_any_run_can_be_drawn(digits, algorithm, every):
    result = safari.train(digits, algorithm, rounds=6, evaluate_every=every)
    assert draw_run(result).startswith(PNG)
    assert draw_comparison({"one": [result.history, result.history]}, 0.6).startswith(PNG)
    whole, classes = result.plot().axes
    seen = result.history.drop_nulls("accuracy")
    np.testing.assert_allclose(whole.lines[1].get_ydata(), 100 * seen["accuracy"].to_numpy())
    assert [line.get_label() for line in classes.lines] == list(result.model.labels)
    recall = [row[3] for row in seen["recall"]]
    np.testing.assert_allclose(classes.lines[3].get_ydata(), 100 * np.array(recall))


def test_a_run_that_diverged_before_it_was_evaluated_can_be_drawn_and_summarised(digits):
    with pytest.raises(safari.Diverged) as caught:
        safari.train(
            digits, safari.FedAvg(local_rate=1e30), model=safari.MLP((8,)), rounds=60, evaluate_every=50
        )
    result = caught.value.result
    assert result.history["accuracy"].is_null().all()
    assert result.summary()["accuracy"] is None
    assert draw_run(result).startswith(PNG)


def test_the_band_in_the_picture_is_the_deviation_in_the_table():
    ends = [0.61, 0.72, 0.78]
    histories = [pl.DataFrame({"round": [1, 2], "accuracy": [0.4, end]}) for end in ends]
    numbers = [{**dict.fromkeys(COLUMNS), "accuracy": end} for end in ends]
    table = tabulate(
        [Compared("safari", one, two, "safari") for one, two in zip(numbers, histories, strict=True)]
    )
    (axes,) = comparison_figure({"safari": histories}, None).axes
    (drawn,) = axes.collections
    corners = drawn.get_paths()[0].vertices
    last = corners[corners[:, 0] == 2.0][:, 1]
    assert table["accuracy_std"][0] == pytest.approx(np.std(ends, ddof=1))
    assert (last.max() - last.min()) / 2 == pytest.approx(100 * table["accuracy_std"][0])
    assert (last.max() + last.min()) / 2 == pytest.approx(100 * table["accuracy_mean"][0])
    assert table["bytes_up_mean"][0] is None


def test_a_single_run_is_drawn_without_a_band_and_has_no_deviation():
    history = pl.DataFrame({"round": [1, 2], "accuracy": [0.4, 0.5]})
    (axes,) = comparison_figure({"safari": [history]}, None).axes
    corners = axes.collections[0].get_paths()[0].vertices
    assert set(corners[corners[:, 0] == 2.0][:, 1]) == {50.0}
