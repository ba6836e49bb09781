"""The paper's numbers: complete, and consistent where the paper is with itself."""

import pytest

from safari.paper.numbers import paper_tables

CELLS = {
    "fedavg": 24,
    "safari_improvement": 24,
    "mnist_server_size": 16,
    "cifar10_server_size": 12,
    "safari_q": 24,
    "fashion_s": 5,
    "fashion_server_share": 4,
    "mnist_random_init": 24,
    "cifar10_random_init": 24,
    "mnist_m": 48,
    "cifar10_m": 32,
}


def value(table, **where):
    found = [
        row
        for row in paper_tables()[table].rows
        if all(getattr(row, name) == wanted for name, wanted in where.items())
    ]
    assert len(found) == 1, (table, where)
    return found[0].mean


def test_all_eleven_tables_are_there():
    assert {key: len(table.rows) for key, table in paper_tables().items()} == CELLS


@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
@pytest.mark.parametrize("s", [0, 2, 4])
def test_fedavg_plus_its_gain_is_the_accuracy_at_q_08(dataset, s):
    where = {"dataset": dataset, "s": s, "p": 1}
    total = value("fedavg", **where) + value("safari_improvement", **where)
    assert total == pytest.approx(value("safari_q", q=0.8, **where), abs=0.011)
    assert value("fedavg", **where) == value("safari_q", q=1.0, **where)


@pytest.mark.parametrize("p", [10, 5, 2, 1])
def test_a_dash_stands_where_the_largest_server_set_has_one(p):
    main = [r for r in paper_tables()["safari_improvement"].rows if (r.dataset, r.s, r.p) == ("mnist", 4, p)]
    sizes = [r for r in paper_tables()["mnist_server_size"].rows if (r.server_samples, r.p) == (1000, p)]
    assert (main[0].mean, main[0].tie) == (sizes[0].mean, sizes[0].tie)
