"""Pictures are drawn for every kind of run."""

import pytest

import safari
from safari.report.curves import draw_comparison, draw_run

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("algorithm", [safari.FedAvg(), safari.ServerSGD(), safari.Safari(q=0.5)])
@pytest.mark.parametrize("every", [1, 4])
def test_any_run_can_be_drawn(digits, algorithm, every):
    result = safari.train(digits, algorithm, rounds=6, evaluate_every=every)
    assert draw_run(result).startswith(PNG)
    assert draw_comparison({"one": [result.history, result.history]}, 0.6).startswith(PNG)


def test_a_run_that_diverged_before_it_was_evaluated_can_be_drawn_and_summarised(digits):
    with pytest.raises(safari.Diverged) as caught:
        safari.train(
            digits, safari.FedAvg(local_rate=1e30), model=safari.MLP((8,)), rounds=60, evaluate_every=50
        )
    result = caught.value.result
    assert result.history["accuracy"].is_null().all()
    assert result.summary()["accuracy"] is None
    assert draw_run(result).startswith(PNG)
