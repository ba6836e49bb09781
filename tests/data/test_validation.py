"""Samples that the server holds out: nobody trains on them, and the test set can be out of reach."""

import numpy as np
import pytest

import safari
from safari.data.server_set import split_held_out


def test_every_class_is_held_out_by_its_share():
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    kept, out = split_held_out(np.arange(100), labels, 0.2)
    assert np.bincount(labels[out]).tolist() == [10, 6, 4]
    assert sorted([*kept, *out]) == list(range(100))


def test_a_class_of_one_sample_is_trained_on():
    kept, out = split_held_out(np.arange(11), np.array([0] * 10 + [1]), 0.5)
    assert 10 in kept
    assert len(out) == 5


def test_held_out_samples_belong_to_neither_server_nor_client():
    federation = safari.federate("digits", server=safari.ServerSet(100), validation=0.3)
    start, count = int(federation.validation.start), int(federation.validation.count)
    held_out = set(np.asarray(federation.samples)[start : start + count].tolist())
    assert len(held_out) == federation.validation_most == 30
    assert federation.server_samples == 70
    others = [federation.held_by(None), *(federation.held_by(i) for i in range(federation.size))]
    assert not held_out & set(np.concatenate(others).tolist())


def test_scored_on_validation_the_test_set_is_not_there():
    federation = safari.federate("digits", server=safari.ServerSet(100), validation=0.3, score="validation")
    plain = safari.federate("digits", server=safari.ServerSet(100), validation=0.3)
    start = int(plain.validation.start)
    rows = np.asarray(plain.samples)[start : start + 30]
    np.testing.assert_array_equal(federation.dataset.x_test, plain.dataset.x[rows])
    np.testing.assert_array_equal(federation.dataset.y_test, plain.dataset.y[rows])


def test_without_validation_everything_is_as_it_was():
    federation = safari.federate("digits")
    assert federation.validation_most == 0
    with pytest.raises(safari.InputError, match="needs held-out samples"):
        safari.federate("digits", score="validation")


def test_the_folds_go_through_all_samples_of_the_server():
    labels = np.repeat([0, 1], [40, 10])
    parts = [split_held_out(np.arange(50), labels, 0.2, fold)[1] for fold in range(5)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(50))
    assert all(np.bincount(labels[part]).tolist() == [8, 2] for part in parts)
