"""Federations: the server's set, coverage, batches."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from refusals import assert_refused
from safari.data.augment import crop_and_flip


def test_the_seed_of_the_partition_is_its_own():
    one, two, other = (safari.federate("digits", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.samples, two.samples)
    assert not np.array_equal(one.held_by(0), other.held_by(0))


def test_server_samples_are_taken_from_the_clients_by_default():
    apart = safari.federate("digits", server=safari.ServerSet(300))
    shared = safari.federate("digits", server=safari.ServerSet(300, disjoint=False))
    clients = lambda f: np.concatenate([f.held_by(i) for i in range(10)])  # noqa: E731
    assert not np.isin(clients(apart), apart.held_by(None)).any()
    assert np.isin(clients(shared), shared.held_by(None)).any()


def test_a_smaller_server_set_is_part_of_a_larger_one():
    servers = (safari.ServerSet(samples) for samples in (30, 200))
    small, large = (safari.federate("digits", server=server).held_by(None) for server in servers)
    assert np.isin(small, large).all()


def test_the_server_set_follows_the_population():
    federation = safari.federate("digits", server=safari.ServerSet(1000, disjoint=False))
    y = np.asarray(federation.dataset.y)
    share = np.bincount(y[federation.held_by(None)]) / 1000
    assert np.abs(share - np.bincount(y) / len(y)).max() < 0.03


def test_the_server_set_can_miss_classes_and_be_skewed():
    def labels(**keys):
        federation = safari.federate("digits", server=safari.ServerSet(**keys))
        return np.asarray(federation.dataset.y)[federation.held_by(None)]

    assert set(labels(missing_classes=(0, 1, 2))) == set(range(3, 10))
    skewed = np.bincount(labels(samples=100, alpha=2.0), minlength=10)
    assert skewed.sum() == 100
    assert skewed.max() > 30


REFUSED_SERVERS = {
    "negative": (lambda: safari.ServerSet(-1), "samples = -1: ", "0 or more"),
    "alpha = 0": (lambda: safari.ServerSet(alpha=0.0), "alpha = 0.0: ", "must be above 0"),
    "more than there are": (
        lambda: safari.federate("digits", server=safari.ServerSet(99_999)),
        "server.samples = 99999: ",
        "the data has only 1442 samples",
    ),
    "all there are": (
        lambda: safari.federate("digits", server=safari.ServerSet(1442)),
        "server.samples = 1442: ",
        "leaves no sample for the clients",
    ),
    "an unknown class": (
        lambda: safari.federate("digits", server=safari.ServerSet(missing_classes=(12,))),
        "server.missing_classes = 12: ",
        "from 0 to 9",
    ),
    "more of a class than there are": (
        lambda: safari.federate("digits", server=safari.ServerSet(1000, alpha=0.1)),
        "server.alpha = 0.1: ",
        "take a larger alpha, fewer samples or another seed",
    ),
}


@pytest.mark.parametrize("case", REFUSED_SERVERS)
def test_server_sets_that_cannot_be_are_refused_in_one_line(case):
    assert_refused(*REFUSED_SERVERS[case])


WRONG_CALLS = {
    "federate(5)": "source = 5: must be a name, a path, a Dataset or a Source",
    "federate(safari.Digits)": "source = <class 'safari.data.sources.digits.Digits'>: must be a name",
    "federate('digits', 'iid')": "partition = iid: must be a Partition, such as Classes()",
    "federate('digits', safari.IID)": "partition = <class 'safari.data.partitions.iid.IID'>: must be a",
    "federate('digits', safari.IID(), 50)": "server = 50: must be a ServerSet, such as ServerSet(100)",
}


def test_what_is_no_noun_is_refused_in_one_line():
    """In a process of its own: the tests' run-time type checks would come first."""
    attempt = "try: safari.{}\nexcept safari.InputError as error: print(error)\n"
    program = "import safari\n" + "".join(attempt.format(call) for call in WRONG_CALLS)
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for line, expected in zip(finished.stdout.splitlines(), WRONG_CALLS.values(), strict=True):
        assert line.startswith(expected)


def test_coverage_and_ceiling_are_what_the_excluded_clients_leave():
    federation = safari.federate("digits", safari.Classes(classes_per_client=1))
    y, y_test = (np.asarray(part) for part in (federation.dataset.y, federation.dataset.y_test))
    gone = {int(y[federation.held_by(i)][0]) for i in (0, 3)}
    coverage = federation.coverage([0, 3])
    assert set(coverage.covered_classes) == set(range(10)) - gone
    assert coverage.accuracy_ceiling == pytest.approx(1 - np.isin(y_test, list(gone)).mean())
    assert coverage.covered_mass == pytest.approx(1 - np.isin(y, list(gone)).mean())
    assert federation.coverage().accuracy_ceiling == 1
    assert str(federation.coverage()) == "All 10 clients can take part."
    assert str(federation.coverage([3])).startswith(
        "1 of 10 clients never takes part; it holds all samples of "
    )


def test_exposure_is_the_share_of_a_class_that_is_not_absent():
    """Twelve hospitals of different sizes; three of them hold nine tenths of the rare class."""
    client = np.repeat(np.arange(12), 100)
    y = np.where(np.arange(1200) % 100 < np.where(client < 3, 30, 1), 2, np.arange(1200) % 2)
    names = ("harbour", "mercy", "north", *(f"hospital {number}" for number in range(9)))
    x = np.random.default_rng(0).normal(size=(1200, 3))
    labels = ("flu", "pneumonia", "sepsis")
    dataset = safari.Dataset(x, y, x, y, client=client, labels=labels, client_names=names)
    coverage = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0)).coverage([0, 1, 2])
    assert coverage.exposure["sepsis"] == 9 / 99
    assert 0.8 < coverage.exposure["flu"] < 0.9
    assert coverage.accuracy_ceiling == 1
    assert str(coverage) == (
        "3 of 12 clients never take part (harbour, mercy, north); they hold 91 % of sepsis."
    )


def test_a_class_that_no_client_holds_is_said_to_be_nobodys():
    x, y = np.ones((9, 1)), np.arange(9) % 3
    labels = ("flu", "pneumonia", "sepsis", "covid")
    dataset = safari.Dataset(x, y, x, np.append(y[:8], 3), client=np.arange(9) // 3, labels=labels)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    assert federation.coverage().nowhere == ("covid",)
    assert str(federation.coverage()).startswith(
        "All 3 clients can take part. No client holds a sample of covid. A model of clients alone that"
    )
    shares = "it holds 33 % of flu, and no larger share of any class"
    assert shares in str(federation.coverage([0]))


def test_a_pass_shows_every_sample_once_and_drops_the_incomplete_batch(digits):
    schedule = digits.schedule(digits.client(jnp.int32(4)), jax.random.key(0), steps=10, size=23)
    for number in range(2):
        one_pass = np.asarray(schedule.samples)[5 * number : 5 * number + 5].ravel()
        assert len(np.unique(one_pass)) == 115
        assert np.isin(one_pass, digits.held_by(4)).all()
    first, second = np.asarray(schedule.samples).reshape(2, -1)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(schedule.weight, 1 / 23)


def test_a_shard_smaller_than_a_batch_is_used_whole(digits):
    schedule = digits.schedule(digits.server, jax.random.key(1), steps=3, size=64)
    used = np.asarray(schedule.samples)[np.asarray(schedule.weight) > 0].reshape(3, 50)
    for batch in used:
        assert sorted(batch) == sorted(digits.held_by(None))
    np.testing.assert_allclose(np.asarray(schedule.weight).sum(axis=1), 1, rtol=1e-6)


def test_pixels_stay_bytes_until_the_batch(digits):
    assert digits.dataset.x.dtype == jnp.uint8
    batch = digits.batch(digits.gather(jnp.arange(5)), jnp.full(5, 0.2), jax.random.key(0))
    assert batch.x.dtype == jnp.float32
    np.testing.assert_allclose(
        batch.x, np.asarray(digits.dataset.shaped(digits.dataset.x[:5])) / 16, rtol=1e-6
    )


def test_crop_and_flip_moves_and_mirrors():
    image = jnp.zeros((1, 16, 40, 1), jnp.uint8).at[0, 8, 10].set(255)
    batch = jnp.repeat(image, 2000, axis=0)
    _, row, column, _ = np.nonzero(np.asarray(crop_and_flip(batch, jax.random.key(0))))
    assert set(row) == set(range(4, 13))
    assert set(column) == set(range(6, 15)) | set(range(25, 34))
    assert 0.45 < (column > 20).mean() < 0.55


def test_augmentation_is_for_training_batches_alone():
    x = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    dataset = safari.Dataset(x, np.arange(40) % 2, x, np.arange(40) % 2)
    plain, augmented = (
        safari.federate(dataset, safari.IID(clients=2), safari.ServerSet(4), augment=flag)
        for flag in (False, True)
    )
    rows, weight, key = plain.gather(jnp.arange(8)), jnp.full(8, 1 / 8), jax.random.key(0)
    assert not np.array_equal(plain.batch(rows, weight, key).x, augmented.batch(rows, weight, key).x)
    np.testing.assert_array_equal(plain.dataset.x_test, augmented.dataset.x_test)
    np.testing.assert_array_equal(plain.plain_batch(rows, weight).x, augmented.plain_batch(rows, weight).x)


def test_a_dataset_keeps_what_it_was_given():
    """Whatever becomes of the arrays it was made of: also where JAX could share their memory."""
    room = np.zeros(10 * 64 + 64, np.uint8)
    x = room[-room.ctypes.data % 64 :][: 10 * 64].reshape(10, 64)
    y = np.arange(10)
    dataset = safari.Dataset(x, y, x, y)
    x[:], y[:] = 7, 0
    assert not dataset.x.any()
    assert not dataset.x_test.any()
    np.testing.assert_array_equal(dataset.y, np.arange(10))


def test_the_server_set_is_drawn_and_not_what_comes_first():
    """A file may be sorted by class."""
    y = np.repeat(np.arange(10), 50)
    x = np.zeros((500, 2), np.float32)
    dataset = safari.Dataset(x, y, x[:10], np.arange(10))
    drawn = [
        safari.federate(dataset, safari.IID(clients=2), safari.ServerSet(100), seed=seed).held_by(None)
        for seed in (0, 1)
    ]
    assert set(drawn[0]) != set(drawn[1])
    assert all(len(set(y[samples])) == 10 for samples in drawn)


def hospitals():
    x, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 2
    names = np.array(["north", "south", "east"])[np.arange(90) % 3]
    return safari.read(x, y, names)


def test_the_server_draws_from_the_clients_that_are_named_and_from_no_others():
    some = safari.federate(hospitals(), server=safari.ServerSet(20, clients=("south", "east")))
    taken = np.asarray(some.dataset.client)[np.asarray(some.held_by(None))]
    assert {some.dataset.client_names[number] for number in taken} == {"south", "east"}
    north = some.dataset.client_names.index("north")
    assert some.clients.count[north] == np.sum(np.asarray(some.dataset.client) == north)
    every = safari.federate(hospitals(), server=safari.ServerSet(20))
    taken = np.asarray(every.dataset.client)[np.asarray(every.held_by(None))]
    assert len(set(taken.tolist())) == 3


def test_clients_to_draw_from_must_be_known():
    with pytest.raises(safari.InputError, match="clients = sout: unknown client; did you mean south"):
        safari.federate(hospitals(), server=safari.ServerSet(5, clients=("sout",)))
    with pytest.raises(safari.InputError, match="needs data that say who holds a sample"):
        safari.federate("digits", server=safari.ServerSet(5, clients=("a",)))
    with pytest.raises(safari.InputError, match="samples = 80: the data has only"):
        safari.federate(hospitals(), server=safari.ServerSet(80, clients=("south",)))
