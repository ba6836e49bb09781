"""The same settings give the same federation, bit for bit, from one version to the next."""

import hashlib

import numpy as np
import pytest

import safari


def with_a_client_column():
    number = np.arange(200)
    x, y = number[:, None], number % 3
    return safari.Dataset(x, y, x[:30], y[:30], client=number * 7 % 11 % 5)


def digest(federation):
    shards = (federation.clients, federation.server)
    arrays = [federation.samples, *(part for shard in shards for part in (shard.start, shard.count))]
    return hashlib.sha256(b"".join(np.asarray(array, "<i4").tobytes() for array in arrays)).hexdigest()


FEDERATIONS = {
    "defaults": (
        lambda: safari.federate("digits"),
        "ddf975ff4b3ce75f7d3d7cf81117d3660b1ae8e56209debec2a5db680b56a6d1",
    ),
    "two classes of a fixed size": (
        lambda: safari.federate(
            "digits", safari.Classes(classes_per_client=2, samples_per_client=40), seed=3
        ),
        "bb0196a8feab54f9a282b18bf316eca96d33b304121fa69a7673a5b085f2236e",
    ),
    "seven classes": (
        lambda: safari.federate("digits", safari.Classes(clients=13, classes_per_client=7)),
        "b2fd4dac8a6ac8cb1de85a0003a3f6d4fa87514e9eec7fcf9d909bf60f1fed41",
    ),
    "three classes, skewed sizes": (
        lambda: safari.federate(
            "digits", safari.Classes(clients=12, classes_per_client=3, size_skew=0.7), safari.ServerSet(60)
        ),
        "9c38f34006e3c384004f7155208654dbc8c6b03614cedcc93a6bdf33942ee043",
    ),
    "all classes": (
        lambda: safari.federate("digits", safari.Classes(classes_per_client=10), seed=1),
        "610de70dd0757362f21d29bc08d5f1c90039df1ed70a861fd2e4d1cc4ec59149",
    ),
    "many clients": (
        lambda: safari.federate("digits", safari.Classes(clients=150, classes_per_client=3), seed=2),
        "542e04549182fde1508793f6eb4a3610e51db861e904e9a15477a367d3cb9249",
    ),
    "dirichlet": (
        lambda: safari.federate("digits", safari.Dirichlet()),
        "b87d073ec726473ca5fd76000a0ba88249d97bf8e8efcf53140619bd5dc4219c",
    ),
    "dirichlet, skewed sizes": (
        lambda: safari.federate("digits", safari.Dirichlet(clients=12, alpha=0.1, size_skew=0.7), seed=5),
        "67267498ac1dcbbdd168a3ab59c4ef8ed9e2c5490626eaab937934b2a330e3c5",
    ),
    "dirichlet of a fixed size": (
        lambda: safari.federate("digits", safari.Dirichlet(alpha=5.0, samples_per_client=50)),
        "db9598c8f31f7cea294c31923b11ebb62f8c7c884a0fd7e6c92863c74bfcfe2e",
    ),
    "iid": (
        lambda: safari.federate("digits", safari.IID(), seed=4),
        "1736c8dba863107a71567a4379d30f0ee335d6908bcc04822caf36cbf079e603",
    ),
    "iid, skewed sizes": (
        lambda: safari.federate("digits", safari.IID(clients=8, size_skew=2.4), safari.ServerSet(9), seed=3),
        "f15844b0d7d83afd500ecde7ebf205ab06fb6d383c4b0ae5c92eb67fd737d91f",
    ),
    "iid of a fixed size, no server": (
        lambda: safari.federate("digits", safari.IID(samples_per_client=120), safari.ServerSet(0)),
        "7112766b846dd09e92653d467ab37317feca6ea3898ec066359fa3a560417580",
    ),
    "a client column": (
        lambda: safari.federate(with_a_client_column(), safari.ByColumn(), safari.ServerSet(5), seed=6),
        "3ca0b628c134c09015d9acca9cd7c67d44021ae195fbc279738513581541ce9a",
    ),
    "samples on both sides": (
        lambda: safari.federate("digits", server=safari.ServerSet(300, disjoint=False)),
        "9fbe9c340f539f792b35158babf0befa15001d67f2fb68dfea05a4c168830dfd",
    ),
    "server without classes": (
        lambda: safari.federate("digits", server=safari.ServerSet(missing_classes=(0, 1, 2)), seed=7),
        "bbb275524433de902963d5aa59deae51ae36fa00c7db5c8ff336c312f9c023f5",
    ),
    "skewed server": (
        lambda: safari.federate("digits", server=safari.ServerSet(alpha=2.0)),
        "f4b1ef4144d30e96efee39e7114e87da71cbc9c8d1a8d921d93776316544f38e",
    ),
    "skewed server without a class": (
        lambda: safari.federate(
            "digits",
            safari.IID(),
            safari.ServerSet(80, disjoint=False, missing_classes=(9,), alpha=5.0),
            seed=11,
        ),
        "25a657a77619e10f89f43e739b051f7e528eb81fee11b41dda074abea1e9499d",
    ),
}


@pytest.mark.parametrize("name", FEDERATIONS)
def test_the_draw_is_the_one_it_always_was(name):
    draw, expected = FEDERATIONS[name]
    assert digest(draw()) == expected
