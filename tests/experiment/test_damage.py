"""Some trials of `make fuzz`: a damaged directory is refused in one line, or gives the same result."""

import random

import pytest

from fuzz.making import make_all
from fuzz.trials import Trial, run_trial, trials, undamaged
from fuzz.uses import USES

TRIALS_OF_A_USE = 3
"""Of each kind of directory."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("run", "sweep.task"):
            patch.setattr(f"safari.experiment.{module}.CHECKPOINT_SECONDS", 0.0)
        yield make_all(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def whole(made):
    return undamaged(made)


def test_damaged_directories_are_refused_or_give_the_same_result(made, whole):
    chance = random.Random(20260715)
    every = trials(made, chance, None)
    alike: dict[tuple[str, str], list[Trial]] = {}
    for trial in every:
        alike.setdefault((trial.place, trial.use), []).append(trial)
    chosen = [trial for some in alike.values() for trial in chance.sample(some, TRIALS_OF_A_USE)]
    failures = [
        f"{trial}: {outcome}"
        for trial in chosen
        if (outcome := run_trial(trial, made, whole, 1)).startswith("FAILED")
    ]
    assert not failures


@pytest.mark.parametrize("damage", ["emptied", "a bit"])
@pytest.mark.parametrize("file", ["spec.toml", "cells.json"])
def test_never_another_run_under_the_same_name(made, whole, file, damage):
    place = "half-a-run" if file == "spec.toml" else "half-a-sweep"
    use = USES[place][0].name
    assert run_trial(Trial(place, file, damage, use), made, whole, 1) == "refused"


def test_a_damaged_state_gives_the_same_result_from_the_one_before_it(made, whole):
    trial = Trial("half-a-run", "checkpoint/round-00000003/state.safetensors", "a bit", "run --resume")
    assert run_trial(trial, made, whole, 1) == "same"
