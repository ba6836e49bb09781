"""Partitions: balanced, without doubles, of the sizes that were asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import safari
from safari.data.partition import deal_classes


@settings(max_examples=150, deadline=None)
@given(
    clients=st.integers(1, 40), classes=st.integers(1, 12), share=st.floats(0, 1), seed=st.integers(0, 1000)
)
def test_class_deals_are_balanced(clients, classes, share, seed):
    per_client = max(1, round(share * classes))
    table = deal_classes(clients, classes, per_client, np.random.default_rng(seed))
    assert (table.sum(axis=1) == per_client).all()
    holders = table.sum(axis=0)
    assert holders.max() - holders.min() <= 1


def test_class_deals_differ_from_seed_to_seed():
    deals = {deal_classes(10, 10, 2, np.random.default_rng(seed)).tobytes() for seed in range(20)}
    assert len(deals) == 20


def test_two_classes_a_client_sometimes_leave_classes_uncovered():
    """Random deals, unlike cyclic ones, vary in what six of ten clients cover."""
    covered = {
        int(deal_classes(10, 10, 2, np.random.default_rng(s))[:6].any(axis=0).sum()) for s in range(200)
    }
    assert {8, 9, 10} <= covered


FEDERATIONS = {
    "classes": {"classes_per_client": 3},
    "classes, skewed sizes": {"classes_per_client": 3, "size_skew": 0.7},
    "dirichlet": {"partition": "dirichlet", "alpha": 0.3},
    "dirichlet, skewed sizes": {"partition": "dirichlet", "alpha": 0.3, "size_skew": 0.7},
    "iid": {"partition": "iid"},
    "iid, skewed sizes": {"partition": "iid", "size_skew": 0.7},
}


@pytest.mark.parametrize("name", FEDERATIONS)
def test_no_sample_is_dealt_twice(name):
    federation = safari.federate("digits", clients=12, server_samples=60, **FEDERATIONS[name])
    held = np.concatenate([federation.held_by(client) for client in [*range(12), None]])
    assert len(np.unique(held)) == len(held)
    sizes = np.asarray(federation.clients.count)
    assert (sizes.max() > 1.5 * sizes.min()) if "skewed" in name else (sizes.min() == sizes.max())


def label_table(federation):
    y = np.asarray(federation.dataset.y)
    return np.stack([np.bincount(y[federation.held_by(i)], minlength=10) for i in range(federation.size)])


def test_each_client_has_its_number_of_classes_in_equal_parts():
    table = label_table(safari.federate("digits", classes_per_client=5))
    assert ((table > 0).sum(axis=1) == 5).all()
    assert len(np.unique(table[table > 0])) == 1


def test_a_small_alpha_makes_clients_narrow_and_a_large_one_broad():
    def breadth(alpha):
        table = label_table(safari.federate("digits", partition="dirichlet", alpha=alpha, seed=1))
        share = table / table.sum(axis=1, keepdims=True)
        return (1 / (share**2).sum(axis=1)).mean()

    assert breadth(0.1) < 3 < 8 < breadth(1000.0)


def test_the_file_says_who_holds_what():
    client = np.repeat(np.arange(4), [10, 20, 30, 40])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    dataset = safari.Dataset(x, y, x[:20], y[:20], client=client)
    federation = safari.federate(dataset, partition="client", server_samples=0)
    for i in range(4):
        assert sorted(federation.held_by(i)) == np.flatnonzero(client == i).tolist()


def test_samples_per_client_fixes_the_size():
    federation = safari.federate("digits", classes_per_client=2, samples_per_client=40)
    assert set(np.asarray(federation.clients.count).tolist()) == {40}
