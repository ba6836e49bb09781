"""Who a client is: names, the keys that they are bound to, two nodes with one name."""

from logging import INFO

import pytest
from flwr.app import Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.proto.node_pb2 import NodeInfo
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.flower import SafariStrategy, identify


class Keyed(LocalGrid):
    """A grid whose nodes have keys, as those of a SuperLink have; `registered` names some of them."""

    def __init__(self, names, keys, registered=None):
        super().__init__(
            make_app(), {n: {"partition-id": n, "client-name": name} for n, name in names.items()}
        )
        self.keys, self.registered = keys, registered or {}

    def get_nodes(self):
        return [
            NodeInfo(node_id=n, public_key=self.keys[n].encode(), name=self.registered.get(n, ""))
            for n in self.nodes
        ]


def carry_out(grid, rounds=1, fleet=("north", "south"), **keys):
    made = SafariStrategy(1.0, server_step, fleet=list(fleet), start_deadline=0.0, round_deadline=1.0, **keys)
    made.start(grid, start(), num_rounds=rounds)
    return made


def test_of_two_nodes_with_one_name_neither_is_taken_and_both_are_named(caplog):
    grid = Keyed({1: "north", 2: "north", 3: "south"}, {1: "a", 2: "b", 3: "c"})
    made = carry_out(grid, rounds=3)
    assert grid.trained() == [3, 3, 3]
    assert caplog.text.count("node 1 and node 2 both call themselves 'north'") == 1
    del grid.nodes[2]
    made = carry_out(grid)
    assert sorted(made.journal.history()["cohort"][0]) == [0, 1]


def test_a_name_belongs_to_the_key_that_had_it_first(tmp_path, caplog):
    state = tmp_path / "state"
    registered = {1: "site-1", 3: "site-3"}
    carry_out(Keyed({1: "north", 3: "south"}, {1: "a", 3: "c"}, registered), checkpoint=state)
    thief = Keyed({7: "north", 3: "south"}, {7: "x", 3: "c"}, {7: "site-7", 3: "site-3"})
    carry_out(thief, rounds=2, checkpoint=state)
    assert thief.trained() == [3]
    assert "node 7 calls itself 'north', but the name is bound to key" in caplog.text
    moved = Keyed({8: "north", 3: "south"}, {8: "a", 3: "c"}, {8: "site-1", 3: "site-3"})
    carry_out(moved, rounds=3, checkpoint=state)
    assert sorted(moved.trained()) == [3, 8]
    renewed = Keyed({9: "north", 3: "south"}, {9: "new", 3: "c"}, {9: "site-9", 3: "site-3"})
    carry_out(renewed, rounds=4, checkpoint=state, rebind=["north"])
    assert sorted(renewed.trained()) == [3, 9]


def test_a_key_that_is_registered_as_one_client_is_no_other(caplog):
    grid = Keyed({1: "south", 2: "south"}, {1: "a", 2: "b"}, {1: "north", 2: "south"})
    carry_out(grid)
    assert grid.trained() == [2]
    assert "node 1 calls itself 'south', but its key is registered as 'north'" in caplog.text


def test_without_authentication_a_node_may_come_with_a_new_key(tmp_path):
    carry_out(Keyed({1: "north"}, {1: "a"}), checkpoint=tmp_path / "state")
    grid = Keyed({5: "north"}, {5: "another"})
    carry_out(grid, rounds=2, checkpoint=tmp_path / "state")
    assert grid.trained() == [5]


def test_a_node_that_cannot_say_who_it_is_says_why(caplog):
    app = ClientApp()

    def broken(message, context):
        raise RuntimeError("no such file: model.py")

    with pytest.raises(ValueError, match=r"clients = 0 of 2: .*no such file"):
        carry_out(LocalGrid(broken, nodes(2)))
    assert "could not say who it is: RuntimeError: no such file: model.py" in caplog.text
    assert isinstance(identify(app), ClientApp)


def test_a_node_that_was_stopped_is_no_fault(caplog):
    """Flower lists it until its heartbeat is overdue, and answers in its place."""

    class Stopped(LocalGrid):
        def _answer(self, message, key):
            reply = super()._answer(message, key)
            if message.metadata.dst_node_id == 77:
                gone = Message(Error(ErrorCode.NODE_UNAVAILABLE, "Error: Node Unavailable"), reply_to=message)
                gone.metadata.__dict__ |= reply.metadata.__dict__
                return gone
            return reply

    carry_out(Stopped(make_app(), {77: {"partition-id": 1}, **nodes(1)}))
    (record,) = [record for record in caplog.records if "node 77" in record.getMessage()]
    assert record.levelno == INFO
    assert "was stopped" in record.getMessage()


def test_identify_leaves_an_app_as_it_was_but_for_one_question():
    app = identify(ClientApp())

    @app.train()
    def train(message, context):
        return Message(RecordDict(), reply_to=message)

    grid = LocalGrid(app, nodes(1))
    made = SafariStrategy(1.0, fleet=1)
    assert list(made.fleet.online(grid)) == [0]
