"""Partitions: balanced, without doubles, of the sizes that were asked for."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import safari
from refusals import assert_refused
from safari.data.partitions.classes import assign_classes
from safari.randomness import host_stream


@settings(max_examples=150, deadline=None)
@given(
    clients=st.integers(1, 40), classes=st.integers(1, 12), share=st.floats(0, 1), seed=st.integers(0, 1000)
)
def test_classes_are_assigned_in_balance(clients, classes, share, seed):
    per_client = max(1, round(share * classes))
    table = assign_classes(clients, classes, per_client, np.random.default_rng(seed))
    assert (table.sum(axis=1) == per_client).all()
    holders = table.sum(axis=0)
    assert holders.max() - holders.min() <= 1


def test_the_assignment_differs_from_seed_to_seed():
    tables = {assign_classes(10, 10, 2, np.random.default_rng(seed)).tobytes() for seed in range(20)}
    assert len(tables) == 20


def test_two_classes_a_client_sometimes_leave_classes_uncovered():
    """Random assignments, unlike cyclic ones, vary in what six of ten clients cover."""
    covered = {
        int(assign_classes(10, 10, 2, np.random.default_rng(s))[:6].any(axis=0).sum()) for s in range(200)
    }
    assert {8, 9, 10} <= covered


PARTITIONS = {
    "classes": safari.Classes(12, classes_per_client=3),
    "classes, skewed sizes": safari.Classes(12, classes_per_client=3, size_skew=0.7),
    "dirichlet": safari.Dirichlet(12, alpha=0.3),
    "dirichlet, skewed sizes": safari.Dirichlet(12, alpha=0.3, size_skew=0.7),
    "iid": safari.IID(12),
    "iid, skewed sizes": safari.IID(12, size_skew=0.7),
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_no_sample_is_held_twice(name):
    federation = safari.federate("digits", PARTITIONS[name], safari.ServerSet(60))
    held = np.concatenate([federation.held_by(client) for client in [*range(12), None]])
    assert len(np.unique(held)) == len(held)
    sizes = np.asarray(federation.clients.count)
    assert (sizes.max() > 1.5 * sizes.min()) if "skewed" in name else (sizes.min() == sizes.max())


def label_table(federation):
    y = np.asarray(federation.dataset.y)
    return np.stack([np.bincount(y[federation.held_by(i)], minlength=10) for i in range(federation.size)])


def test_each_client_has_its_number_of_classes_in_equal_parts():
    table = label_table(safari.federate("digits", safari.Classes(classes_per_client=5)))
    assert ((table > 0).sum(axis=1) == 5).all()
    assert len(np.unique(table[table > 0])) == 1


def test_a_small_alpha_makes_clients_narrow_and_a_large_one_broad():
    def breadth(alpha):
        table = label_table(safari.federate("digits", safari.Dirichlet(alpha=alpha), seed=1))
        share = table / table.sum(axis=1, keepdims=True)
        return (1 / (share**2).sum(axis=1)).mean()

    assert breadth(0.1) < 3 < 8 < breadth(1000.0)


def test_the_file_says_who_holds_what():
    client = np.repeat(np.arange(4), [10, 20, 30, 40])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    dataset = safari.Dataset(x, y, x[:20], y[:20], client=client)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    for i in range(4):
        assert sorted(federation.held_by(i)) == np.flatnonzero(client == i).tolist()


def test_samples_per_client_fixes_the_size():
    federation = safari.federate("digits", safari.Classes(classes_per_client=2, samples_per_client=40))
    assert set(np.asarray(federation.clients.count).tolist()) == {40}


REFUSED = {
    "no clients": (lambda: safari.IID(clients=0), "clients = 0: ", "at least 1"),
    "no classes": (lambda: safari.Classes(classes_per_client=0), "classes_per_client = 0: ", "at least 1"),
    "no samples": (lambda: safari.IID(samples_per_client=0), "samples_per_client = 0: ", "at least 1"),
    "alpha = 0": (lambda: safari.Dirichlet(alpha=0), "alpha = 0: ", "must be above 0"),
    "negative skew": (lambda: safari.IID(size_skew=-1.0), "size_skew = -1.0: ", "0 or more"),
    "a size and a skew": (
        lambda: safari.Classes(samples_per_client=10, size_skew=1.0),
        "samples_per_client = 10: ",
        "needs size_skew = 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_out_of_range_are_refused(case):
    make, key, allowed = REFUSED[case]
    assert_refused(make, key, allowed)


UNFIT = {
    "more classes than there are": (
        safari.Classes(classes_per_client=11),
        "partition.classes_per_client = 11: ",
        "the data has only 10 classes",
    ),
    "more clients than samples": (safari.IID(5000), "partition.clients = 5000: ", "only 1342 samples"),
    "more clients than samples of a class": (safari.Classes(1342), "partition.clients = 1342: ", "too many"),
    "larger clients than samples": (
        safari.Dirichlet(samples_per_client=200),
        "partition.samples_per_client = 200: ",
        "134 at the most",
    ),
    "a size that classes do not divide": (
        safari.Classes(classes_per_client=3, samples_per_client=10),
        "partition.samples_per_client = 10: ",
        "must be a multiple of 3",
    ),
    "a client without samples": (safari.IID(300, size_skew=3.0), "partition.clients = 300: ", "no sample"),
    "no client column": (safari.ByColumn(), "partition = ByColumn(): ", "digits has no client column"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_partitions_that_the_data_do_not_allow_are_refused(case):
    partition, key, allowed = UNFIT[case]
    assert_refused(lambda: safari.federate("digits", partition), key, allowed)


def test_the_server_may_not_take_all_that_a_client_holds():
    x, y, client = np.ones((20, 1)), np.arange(20) % 2, (np.arange(20) == 3).astype(int)
    dataset = safari.Dataset(x, y, x, y, client=client)
    server = safari.ServerSet(19)
    taken = next(
        seed for seed in range(100) if 3 in server.draw(dataset, host_stream(seed, "server set")).tolist()
    )
    assert_refused(
        lambda: safari.federate(dataset, safari.ByColumn(), server, seed=taken),
        "partition = ByColumn(): ",
        "client 1 would hold no sample",
    )


class Strides(safari.Partition):
    """A partition of a user's own, with a whole number, a number and a truth value."""

    clients: int = 4
    kept: float = 0.5
    shuffled: bool = False

    def __check_init__(self):
        if not 0 < self.kept <= 1:
            raise safari.InputError("kept", self.kept, "must be above 0, 1 at the most")

    def split(self, dataset, pool, rng):
        if self.kept * len(pool) < self.clients:
            raise safari.InputError("kept", self.kept, "leaves too few samples")
        pool = rng.permutation(pool) if self.shuffled else pool
        pool = pool[: int(self.kept * len(pool))]
        return [pool[client :: self.clients] for client in range(self.clients)]


def test_a_partition_of_ones_own_is_used():
    federation = safari.federate("digits", Strides(clients=3, kept=0.25))
    assert federation.size == 3
    assert int(np.asarray(federation.clients.count).sum()) == 1342 // 4
    assert not np.isin(federation.held_by(1), federation.held_by(None)).any()


def test_a_partition_of_ones_own_follows_the_seed():
    one, two, other = (safari.federate("digits", Strides(shuffled=True), seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.samples, two.samples)
    assert not np.array_equal(one.held_by(0), other.held_by(0))


def test_a_partition_of_ones_own_refuses_its_values_in_its_own_words():
    assert_refused(lambda: Strides(kept=0.0), "kept = 0.0: ", "must be above 0")
    assert_refused(
        lambda: safari.federate("digits", Strides(kept=0.001)), "partition.kept = 0.001: ", "too few samples"
    )


class Returns(safari.Partition):
    """Returns what it was told to, made of the pool."""

    what: Callable

    def split(self, dataset, pool, rng):
        return self.what(pool)


WRONG = {
    "nothing": (lambda pool: None, "must return a list of integer arrays"),
    "one array": (lambda pool: pool, "must return a list of integer arrays"),
    "lists": (lambda pool: [pool.tolist()], "must return a list of integer arrays"),
    "floats": (lambda pool: [pool.astype(float)], "must return a list of integer arrays"),
    "truth values": (lambda pool: [pool > 5], "must return a list of integer arrays"),
    "a table": (lambda pool: [pool.reshape(2, -1)], "must return a list of integer arrays"),
    "no client": (lambda pool: [], "at least one client"),
    "an empty client": (lambda pool: [pool, pool[:0]], "client 1 would hold no sample"),
    "a negative number": (lambda pool: [pool, np.array([-1])], "gives sample -1, which is not in the pool"),
    "a number too large": (lambda pool: [np.array([99_999])], "gives sample 99999, which is not in the pool"),
    "a sample of the server's": (lambda pool: [np.arange(1442)], "which is not in the pool"),
    "a sample twice": (lambda pool: [pool, pool[7:8]], "twice"),
    "an error": (lambda pool: pool[10_000], "fails (IndexError: index 10000 is out of bounds"),
    "an error of two lines": (lambda pool: int("one\ntwo"), "fails (ValueError: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_partition_of_ones_own_that_is_wrong_is_refused_in_one_line(case):
    split, allowed = WRONG[case]
    assert_refused(lambda: safari.federate("digits", Returns(split)), "partition = Returns(", allowed)


class Narrow(safari.Partition):
    def split(self, dataset):
        return []


def test_a_partition_with_another_signature_is_refused():
    assert_refused(
        lambda: safari.federate("digits", Narrow()), "partition = Narrow(): ", "fails (TypeError: "
    )


def test_unsigned_numbers_of_samples_will_do():
    signed, unsigned = (
        safari.federate("digits", Returns(lambda pool, kind=kind: [pool[:5].astype(kind), pool[5:9]]))
        for kind in (np.int64, np.uint64)
    )
    np.testing.assert_array_equal(signed.samples, unsigned.samples)


def test_a_partition_without_split_cannot_be_made():
    class Unfinished(safari.Partition):
        clients: int = 3

    with pytest.raises(TypeError, match=r"abstract method '?split"):
        Unfinished()


def test_mixtures_follow_the_shares_of_the_classes():
    """With a large alpha every client resembles the population, which has few samples of most classes."""
    y = np.repeat(np.arange(5), (4000, 250, 250, 250, 250))
    dataset = safari.Dataset(np.zeros((len(y), 2), np.float32), y, np.zeros((5, 2), np.float32), np.arange(5))
    mixed = safari.Dirichlet(clients=5, alpha=1000.0, samples_per_client=100)
    federation = safari.federate(dataset, mixed, safari.ServerSet(0))
    shares = [np.mean(y[federation.held_by(client)] == 0) for client in range(5)]
    assert np.mean(shares) == pytest.approx(0.8, abs=0.06)
    server = safari.ServerSet(200, alpha=1000.0).draw(dataset, np.random.default_rng(0))
    assert np.mean(y[server] == 0) == pytest.approx(0.8, abs=0.1)
