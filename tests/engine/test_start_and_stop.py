"""Where training starts, how its rates change, and when it stops early."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from refusals import assert_refused
from safari.engine import Training, prepare
from safari.registry import SCHEDULES

ROUNDS = 12
EVERYONE = safari.Participation(per_round=4)


@pytest.fixture(scope="module")
def federation():
    clients = safari.Classes(samples_per_client=120)
    return safari.federate("digits", clients, safari.ServerSet(50), validation=0.4)


def prepared(federation, seed=3, algorithm=None, rounds=ROUNDS, every=1, **options):
    algorithm = algorithm or safari.Safari(q=0.6)
    shared = (safari.Logistic(), EVERYONE, rounds, seed, every, "float32")
    return prepare(federation, algorithm, *shared, **options)


def finish(training, most=64):
    while not training.finished:
        training.advance(most)
    return training.results()


def assert_same(one, two, **tolerance):
    for a, b in zip(*map(jax.tree.leaves, (one, two)), strict=True):
        if tolerance:
            np.testing.assert_allclose(a, b, **tolerance)
        else:
            np.testing.assert_array_equal(a, b)


# Early stopping.


def stops_after(history, patience):
    """The round that training stops after, the slow way."""
    best, reached = (-1.0, -np.inf), 0
    scores = zip(history["validation_balanced_accuracy"], history["validation_loss"], strict=True)
    for number, (balanced, loss) in enumerate(scores, 1):
        if balanced is None:
            continue
        if (balanced, -loss) > best:
            best, reached = (balanced, -loss), number
        if number - reached >= patience:
            return number
    return None


@pytest.fixture(scope="module")
def whole(federation):
    """Runs that never stop early, long enough that their validation scores have ups and downs."""
    return {
        seed: finish(Training(prepared(federation, seed, deliver="best", rounds=40)))[0] for seed in (3, 4)
    }


def test_a_run_stops_once_its_patience_is_gone_and_was_the_longer_run_until_then(federation, whole):
    run = prepared(federation, deliver="best", rounds=40, patience=3)
    stop = stops_after(whole[3].history, 3)
    assert stop is not None
    assert stop < 40
    for most in (64, 1):
        result = finish(Training(run), most)[0]
        assert result.stopped_at == result.summary()["stopped_at"] == stop
        until_then = whole[3].history.head(stop)
        assert result.history["reported"].to_list() == until_then["reported"].to_list()
        np.testing.assert_allclose(result.history["loss_round"], until_then["loss_round"], rtol=1e-5)
    shorter = finish(Training(prepared(federation, deliver="best", rounds=stop)))[0]
    assert_same((result.params, result.params_last), (shorter.params, shorter.params_last), atol=1e-5)


def test_side_by_side_each_run_stops_for_itself(federation, whole):
    runs = [prepared(federation, seed, deliver="best", rounds=40, patience=3) for seed in (3, 4)]
    together = Training(runs)
    logs = finish(together)
    assert [log.stopped_at for log in logs] == [stops_after(whole[seed].history, 3) for seed in (3, 4)]
    alone = finish(Training(runs[1]))[0]
    assert_same(logs[1].params_last, alone.params_last, atol=1e-5)
    again = Training(runs)
    again.restore(together.carries(), together.histories(), together.done)
    assert again.finished
    assert [log.stopped_at for log in again.results()] == [log.stopped_at for log in logs]
    assert [log.diverged_at for log in again.results()] == [None, None]


def test_patience_needs_samples_to_judge_by_and_time_to_do_so(federation, digits):
    assert_refused(lambda: prepared(digits, patience=5), "train.patience = 5", "set data.validation")
    wanted = "at least train.evaluate_every (4)"
    assert_refused(lambda: prepared(federation, patience=3, every=4), "train.patience = 3", wanted)


# Schedules.


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_a_scheduled_round_is_a_round_at_the_rates_of_its_number(federation, name):
    schedule = SCHEDULES[name]()
    algorithm = safari.Safari(safari.SCAFFOLD(local_rate=0.2), safari.ServerSGD(rate=0.3), q=0.6)
    training = Training(prepared(federation, algorithm=algorithm, schedule=schedule))
    training.advance(most=1)
    factors = []
    while not training.finished:
        before, number = training.carry, training.done
        factor = float(schedule.factor(jnp.int32(number), ROUNDS))
        factors.append(factor)
        slower = safari.Safari(
            safari.SCAFFOLD(local_rate=0.2 * factor), safari.ServerSGD(rate=0.3 * factor), q=0.6
        )
        single = Training(prepared(federation, algorithm=slower))
        single.carry, single.done = before, number
        single.advance(most=1)
        training.advance(most=1)
        assert_same(training.carry.state.params, single.carry.state.params, atol=1e-6)
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > factors[-1]
    assert float(schedule.factor(jnp.int32(0), ROUNDS)) == 1.0


def test_a_schedule_out_of_range_is_refused():
    assert_refused(lambda: safari.Cosine(end=2.0), "end = 2.0", "must be between 0 and 1")
    assert_refused(lambda: safari.Exponential(decay=0.0), "decay = 0.0", "must be above 0")


# Warm starts.


def test_a_run_begins_where_another_ended_however_it_is_handed_over(federation, tmp_path):
    first = finish(Training(prepared(federation)))[0]
    first.model.save(tmp_path / "model.safetensors")
    for begin in (first.model, first.params, tmp_path / "model.safetensors", str(tmp_path)):
        run = prepared(federation, start=begin)
        assert_same(Training(run).carry.state.params, first.params)
    cold, warm = prepared(federation, 4), prepared(federation, 4, start=first.model)
    logs = finish(Training([warm, prepared(federation, 5, start=first.model)]))
    alone = finish(Training(warm))[0]
    assert_same(logs[0].params_last, alone.params_last, atol=1e-5)
    assert alone.history["loss_round"][0] < finish(Training(cold))[0].history["loss_round"][0]


def test_a_start_that_does_not_fit_is_refused_in_one_line(federation, tmp_path):
    params = finish(Training(prepared(federation)))[0].params
    cut = {**params, "weight": params["weight"][:, :3]}
    wanted = "has weight of shape (10, 3), the model needs weight of shape (10, 64)"
    assert_refused(lambda: prepared(federation, start=cut), "train.start", wanted)
    less = {"weight": params["weight"]}
    wanted = "has no bias, the model needs bias of shape (10,)"
    assert_refused(lambda: prepared(federation, start=less), "train.start", wanted)
    missing = tmp_path / "nothing.safetensors"
    assert_refused(lambda: prepared(federation, start=missing), "train.start", "no such file")


def test_a_start_that_names_its_classes_otherwise_is_refused(federation):
    model = finish(Training(prepared(federation)))[0].model
    data = federation.dataset
    arrays = [np.asarray(one) for one in (data.x, data.y, data.x_test, data.y_test)]
    named = safari.Dataset(*[one.reshape(-1, 8, 8) if one.ndim == 2 else one for one in arrays],
                           labels=list("abcdefghij"))  # fmt: skip
    other = safari.federate(named, safari.Classes(samples_per_client=120), safari.ServerSet(50))
    wanted = "tells 10 classes (0, 1, 2, ...) apart, the data 10 classes (a, b, c, ...)"
    assert_refused(lambda: prepared(other, start=model), "train.start", wanted)
