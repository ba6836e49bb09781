"""The paper's MNIST setting on the real data: p = 1, s = 4, n_T = 1000, 150 rounds."""

from pathlib import Path

import pytest

from safari.engine.training import Training
from safari.experiment import load_spec

EXAMPLE = Path(__file__).parents[1] / "examples" / "mnist.toml"


def trained(real_data, *overrides):
    training = Training(load_spec(EXAMPLE, [f"data.folder={real_data}", *overrides]).prepare())
    while not training.finished:
        training.advance()
    return training.result()


@pytest.mark.parametrize("seed", range(5))
def test_safari_reaches_the_papers_accuracy(real_data, seed):
    result = trained(real_data, f"train.seed={seed}")
    assert 0.875 <= result.accuracy <= 0.905


@pytest.mark.parametrize("seed", range(5))
def test_fedavg_stays_under_its_ceiling(real_data, seed):
    result = trained(real_data, f"train.seed={seed}", "algorithm.name=fedavg")
    assert 0.54 <= result.accuracy_round_last10 <= 0.60
    assert result.accuracy_round < result.coverage.accuracy_ceiling + 0.005
