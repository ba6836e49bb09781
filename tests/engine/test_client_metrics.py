"""The delivered model client by client: whose samples count, and what they say."""

import json

import numpy as np
import polars as pl
import pytest

import safari
from safari.algorithms.data_sharing import DataSharing
from safari.experiment import load_spec
from safari.experiment.sweep.store import by_number
from safari.report.metric_names import metric_named
from safari.report.tables import client_spread, client_table

MISSING = safari.Participation(excluded=[0, 1], per_round=5)


def digits(share, **options):
    return safari.federate("digits", safari.Classes(classes_per_client=2), client_test=share, **options)


@pytest.fixture(scope="module")
def trained():
    federation = digits(0.25)
    return federation, safari.train(federation, participation=MISSING, rounds=5)


def test_every_client_is_scored_on_its_own_samples_alone(trained):
    federation, result = trained
    clients, dataset = result.metrics.clients, federation.dataset
    assert clients.clients == tuple(map(str, range(10)))
    for number, held_out in enumerate(federation.held_out_by_clients()):
        y = np.asarray(dataset.y)[held_out]
        alone = result.model.evaluate(np.asarray(dataset.x)[held_out], y)
        assert clients.samples[number] == len(held_out)
        assert clients.accuracy[number] == pytest.approx(alone.accuracy)
        assert clients.balanced_accuracy[number] == pytest.approx(alone.balanced_accuracy)
        assert clients.loss[number] == pytest.approx(alone.loss)
    assert clients.takes_part == (False, False, *[True] * 8)


def test_a_share_of_each_class_is_held_out_and_trained_on_by_nobody(trained):
    federation, whole = trained[0], digits(0)
    for number, held_out in enumerate(federation.held_out_by_clients()):
        kept, before = federation.held_by(number), whole.held_by(number)
        assert not set(kept) & set(held_out)
        assert set(kept) | set(held_out) == set(before)
        share = len(held_out) / len(before)
        assert share == pytest.approx(0.25, abs=0.01)
        for label in np.unique(np.asarray(whole.dataset.y)[before]):
            own = np.asarray(whole.dataset.y)
            assert (own[held_out] == label).sum() == pytest.approx(0.25 * (own[before] == label).sum(), abs=1)
    np.testing.assert_array_equal(federation.held_by(None), whole.held_by(None))


def test_without_a_share_nothing_is_held_out_and_nothing_is_said():
    federation = digits(0)
    assert federation.held_out_by_clients() is None
    result = safari.train(federation, participation=MISSING, rounds=2)
    assert result.metrics.clients is None
    assert not {"clients", "worst_client"} & set(result.summary())


def test_held_out_samples_are_in_no_compiled_program(trained):
    """Their numbers lie behind all others: runs of clients that hold less train as ever."""
    federation, result = trained
    bare = safari.Federation.of(
        federation.dataset, [federation.held_by(client) for client in range(10)], federation.held_by(None)
    )
    again = safari.train(bare, participation=MISSING, rounds=5)
    for name, leaf in result.params.items():
        np.testing.assert_array_equal(leaf, again.params[name])


def test_clients_that_are_handed_samples_hold_out_the_same(trained):
    federation = trained[0]
    _, shared = DataSharing().bind(federation, 0)
    for one, two in zip(federation.held_out_by_clients(), shared.held_out_by_clients(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_spread_is_that_of_the_quantiles_and_the_worst_is_named():
    y = np.array([0, 1, 0, 1, 0, 1])
    probabilities = np.eye(2)[[0, 1, 0, 0, 1, 0]]
    clients = safari.Metrics.of(y, probabilities, client=np.array(["b", "b", "a", "a", "c", "c"])).clients
    assert clients.clients == ("a", "b", "c")
    assert clients.accuracy == (0.5, 1.0, 0.0)
    assert clients.worst_client == "c"
    assert list(clients.spread().values()) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert clients.table().columns == ["client", "samples", "accuracy", "balanced_accuracy", "loss"]


def test_every_class_of_a_client_counts_the_same_in_its_balanced_accuracy():
    y, named = np.array([0, 0, 0, 1, 1]), np.eye(3)[[0, 0, 0, 0, 1]]
    clients = safari.Metrics.of(y, named, client=np.array(["a", "a", "a", "a", "b"])).clients
    assert clients.accuracy == (0.75, 1.0)
    assert clients.balanced_accuracy == (0.5, 1.0)


def test_of_clients_that_tie_for_the_worst_the_first_by_number_is_named():
    y = np.zeros(4, int)
    found = safari.Metrics.of(y, np.eye(2)[[1, 1, 0, 0]], client=np.array([10, 2, 30, 30])).clients
    assert found.clients == ("2", "10", "30")
    assert found.worst_client == "2"


def test_summary_row_and_table_tell_the_same(trained):
    summary = json.loads(json.dumps(trained[1].summary()))
    row, clients = by_number(summary), trained[1].metrics.clients
    for name in ("worst_client_accuracy", "median_client_accuracy", "client:7"):
        assert metric_named(name).of(summary) == metric_named(name).of(row) is not None
    assert metric_named("worst_client_accuracy").of(row) == min(clients.accuracy)
    assert summary["worst_client"] in client_spread(summary)
    assert client_table(summary).row_count == 10


def test_of_more_than_a_thousand_clients_only_the_spread_is_written():
    holder = np.repeat(np.arange(1001), 2)
    found = safari.Metrics.of(holder % 2, np.eye(2)[holder % 2], client=holder).to_dict()
    assert found["clients"] is None
    assert found["median_client_accuracy"] == 1.0
    assert client_table(found) is None


@pytest.fixture
def shops(tmp_path):
    """Three shops; the test file also has one that never trained."""
    rows = np.arange(90)
    table = pl.DataFrame(
        {
            "price": (rows * 7) % 31 + 0.5,
            "shop": np.array(["east", "north", "west"])[rows % 3],
            "sold": np.array(["no", "yes"])[(rows * 7) % 31 // 16],
        }
    )
    table.write_csv(tmp_path / "sales.csv")
    table[:20].drop("shop").write_csv(tmp_path / "own.csv")
    newcomer = table[:30].with_columns(shop=pl.lit("young"))
    pl.concat([table[60:], newcomer]).write_csv(tmp_path / "test.csv")
    return tmp_path


SPEC = """
[data]
source = "sales.csv"
label = "sold"
client = "shop"
server = "own.csv"
test = "test.csv"
[participation]
excluded = ["west"]
[train]
rounds = 2
"""


def trained_from(folder, spec, *overrides):
    (folder / "spec.toml").write_text(spec)
    run = load_spec(folder / "spec.toml", overrides)
    own = run.federation()
    return safari.train(own, participation=run.participation(), rounds=2)


def test_a_test_file_that_names_clients_is_scored_by_them(shops):
    clients = trained_from(shops, SPEC).metrics.clients
    assert clients.clients == ("east", "north", "west", "young")
    assert clients.takes_part == (True, True, False, False)
    assert sum(clients.samples) == 60


def test_samples_that_are_held_out_of_a_file_keep_their_clients(shops):
    clients = trained_from(shops, SPEC.replace('test = "test.csv"\n', "")).metrics.clients
    assert clients.clients == ("east", "north", "west")


def test_another_partition_has_other_clients(shops):
    spec = SPEC.replace('["west"]', "1")
    assert trained_from(shops, spec, "data.partition=iid").metrics.clients is None


def test_a_held_out_share_comes_before_the_clients_of_the_test_file(shops):
    clients = trained_from(shops, SPEC, "data.client_test=0.5").metrics.clients
    assert clients.clients == ("east", "north", "west")


def test_a_model_by_itself_is_told_the_column(shops):
    model = trained_from(shops, SPEC).model
    frame = pl.read_csv(shops / "test.csv")
    told = model.evaluate(frame, "sold", client="shop").clients
    assert told.accuracy == model.evaluate(shops / "test.csv", "sold", client="shop").clients.accuracy
    arrays = model.evaluate(frame.select("price").to_numpy(), frame["sold"], client=frame["shop"])
    assert arrays.clients.accuracy == told.accuracy
    assert model.evaluate(frame, "sold").clients is None
    with pytest.raises(safari.InputError, match="unknown column of the samples; did you mean shop"):
        model.evaluate(frame, "sold", client="shoppe")
