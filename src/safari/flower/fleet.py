"""The fleet: which client a node is, whoever is connected, and what each of them did.

Flower numbers nodes at random, anew whenever one connects. A client keeps its name: its
partition, or what its owner calls it. Clients are told apart by that, drawn by that, and
found again by that after a restart.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING

from flwr.app import Message, MessageType, RecordDict
from flwr.common import log
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

from safari.flower.exchange import exchange, one_line
from safari.flower.identity import ANSWER, QUESTION
from safari.flower.keys import Keys, nodes_of

PATIENCE = 5
"""A node that did not say who it is in time is asked again after so many deadlines."""
MOST_MISSED = 10
"""So many clients that are not connected yet are named."""
LONGEST_REST = 32
"""A node that was late is left alone for 1, 2, 4 and so on deadlines, at most for so many."""


@dataclass
class Fleet:
    """Clients by number, 0 to `size` - 1, and the nodes that they are connected by.

    `names` are the names of the clients in the order of their numbers; one that gives a number
    instead, as simulated nodes do, is the client of that number. Without them, names
    that are whole numbers (partitions) stand for themselves and others are numbered as they come.
    `silent` are the connected nodes that are no client, each with the reason.
    """

    size: int | None = None
    names: list[str] = field(default_factory=list)
    fixed: bool = False
    deadline: float = 60.0
    nodes: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    keys: Keys = field(default_factory=Keys)
    silent: dict[int, str] = field(default_factory=dict)
    _doubled: set[frozenset[int]] = field(default_factory=set)
    _asked: dict[int, float] = field(default_factory=dict)
    _late: dict[int, tuple[int, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, clients: int | Sequence[str] | None, deadline: float) -> "Fleet":
        """The fleet of so many clients, or of those with these names, or of whoever comes."""
        if clients is None or isinstance(clients, int):
            return cls(size=clients, deadline=deadline)
        names = [str(name) for name in clients]
        return cls(size=len(names), names=names, fixed=True, deadline=deadline)

    @property
    def declared(self) -> int | list[str] | None:
        """What the user said of the fleet."""
        return self.names if self.fixed else self.size

    @property
    def known(self) -> int:
        """How many client numbers there are."""
        return max([self.size or 0, *(client + 1 for client in self.seen)])

    def name(self, client: int) -> str:
        return self.names[client] if client < len(self.names) else str(client)

    def online(self, grid: Grid) -> dict[int, int]:
        """The connected clients, each with its node; nodes that are new are asked who they are.

        One that does not answer in time is nobody yet, and is asked again later; at once where
        nobody else is there.
        """
        there = nodes_of(grid)
        connected = set(there)
        now, nobody = time.monotonic(), connected.isdisjoint(self.nodes)
        unknown = sorted(connected - set(self.nodes))
        new = [node for node in unknown if nobody or now > self._asked.get(node, -1.0)]
        if new:
            self._ask(grid, {node: there[node] for node in new})
        self.silent = {node: why for node, why in self.silent.items() if node in connected}
        found = self._alone({node: client for node, client in self.nodes.items() if node in connected})
        self.seen |= set(found)
        return dict(sorted(found.items()))

    def _alone(self, nodes: dict[int, int]) -> dict[int, int]:
        """The clients with their nodes; a client that two nodes claim to be is neither of them."""
        claims: dict[int, list[int]] = {}
        for node, client in nodes.items():
            if client >= 0:
                claims.setdefault(client, []).append(node)
        for client, claimants in claims.items():
            if len(claimants) > 1 and frozenset(claimants) not in self._doubled:
                self._doubled.add(frozenset(claimants))
                both = " and ".join(f"node {node}" for node in sorted(claimants))
                said = "safari: %s both call themselves %r: neither is asked while both are connected"
                log(WARNING, said, both, self.name(client))
        return {client: claimants[0] for client, claimants in claims.items() if len(claimants) == 1}

    def late(self, nodes: Iterable[int]) -> None:
        """These did not answer in time: each time in a row they are left alone for twice as long."""
        for node in nodes:
            times = self._late.get(node, (0, 0.0))[0] + 1
            rest = min(2 ** (times - 1), LONGEST_REST) * self.deadline
            self._late[node] = times, time.monotonic() + rest

    def answered(self, nodes: Iterable[int]) -> None:
        """These did: what they missed before is forgotten."""
        for node in nodes:
            self._late.pop(node, None)

    def awake(self, online: dict[int, int]) -> dict[int, int]:
        """Those of `online` that are not left alone; all of them if that is everyone."""
        now = time.monotonic()
        found = {client: node for client, node in online.items() if self._late.get(node, (0, now))[1] <= now}
        return found or online

    def gather(self, grid: Grid, seconds: float) -> dict[int, int]:
        """Wait, no longer than `seconds`, until all clients are there; without a known number, one."""
        until = time.monotonic() + seconds
        while len(list(grid.get_node_ids())) < (self.size or 1) and time.monotonic() < until:
            time.sleep(0.2)
        found = self.online(grid)
        wanted = f" of {self.size}" if self.size else ""
        level = INFO if found else WARNING
        missing = [client for client in range(self.size or 0) if client not in found][:MOST_MISSED]
        later = f"; not yet: {self._list(missing)}" if self.names and missing else ""
        log(level, "safari: %d%s clients are connected: %s%s", len(found), wanted, self._list(found), later)
        return found

    def _ask(self, grid: Grid, nodes: dict[int, NodeInfo]) -> None:
        questions = [
            Message(RecordDict(), dst_node_id=node, message_type=f"{MessageType.QUERY}.{QUESTION}")
            for node in nodes
        ]
        back = exchange(grid, questions, self.deadline)
        again = time.monotonic() + PATIENCE * self.deadline
        self._asked |= dict.fromkeys(nodes, again)
        answers = dict.fromkeys((node for node, reason in back.failed if QUESTION in reason), "")
        for reply in back.replies:
            said = reply.content.config_records.get(ANSWER)
            answers[reply.metadata.src_node_id] = "" if said is None else str(said.get("name", ""))
        failed = dict(back.failed)
        for node in back.gone:
            self.silent[node] = "was stopped, or has lost its connection; Flower lists it for a while yet"
            log(INFO, "safari: node %d %s: it is not waited for", node, self.silent[node])
        for node in sorted(set(nodes) - set(answers) - set(back.gone)):
            late = f"did not say within {self.deadline:g} s who it is"
            why = f"could not say who it is: {one_line(failed[node])}" if node in failed else late
            self.silent[node] = why
            log(WARNING, "safari: node %d %s", node, why)
        for node in sorted(answers):
            self.silent.pop(node, None)
            self.nodes[node] = self._admitted(self._number(answers[node], node), nodes[node])

    def _admitted(self, client: int, node: NodeInfo) -> int:
        """The client, if the key of the node does not say otherwise; -1 if it does."""
        names = self.names if self.fixed else ()
        fault = None if client < 0 else self.keys.fault(self.name(client), node, names)
        if fault is None:
            return client
        self.silent[node.node_id] = f"calls itself {self.name(client)!r}, but {fault}"
        log(WARNING, "safari: node %d %s: it is not asked", node.node_id, self.silent[node.node_id])
        return -1

    def _number(self, name: str, node: int) -> int:
        """The client's number; -1 for a node that belongs to nobody known."""
        if name in self.names:
            return self.names.index(name)
        if self.fixed and name.isdecimal() and int(name) < len(self.names):
            return int(name)
        if self.fixed:
            self.silent[node] = f"calls itself {name!r}, which is no client of this fleet"
            log(WARNING, "safari: node %d %s", node, self.silent[node])
            return -1
        if name.isdecimal() and (self.size is None or int(name) < self.size):
            return int(name)
        taken = {*self.nodes.values(), *range(len(self.names))}
        number = next(number for number in range(len(taken) + 1) if number not in taken)
        if not name:
            log(
                WARNING,
                "safari: node %d does not say who it is (see `safari.flower.identify`): it is client %d, "
                "until a restart",
                node,
                number,
            )
        elif number == len(self.names):
            self.names.append(name)
        return number

    def _list(self, clients: Iterable[int]) -> str:
        return ", ".join(self.name(client) for client in clients) or "none"
