"""The fleet: which client a node is, whoever is connected, and what each of them did.

Flower numbers nodes at random, anew whenever one connects. A client keeps its name: its
partition, or what its owner calls it. Clients are told apart by that, drawn by that, and
found again by that after a restart.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import log
from flwr.serverapp import Grid

from safari.flower.exchange import exchange

QUESTION = "safari_name"
ANSWER = "client"
NAME_KEYS = ("client-name", "partition-id")
ANSWER_SECONDS = 10.0


def identify(app: ClientApp) -> ClientApp:
    """Let the clients of `app` say who they are: `client-name` or `partition-id` of their node config."""

    @app.query(QUESTION)
    def answer(message: Message, context: Context) -> Message:
        config = context.node_config
        name = next((str(config[key]) for key in NAME_KEYS if key in config), "")
        return Message(RecordDict({ANSWER: ConfigRecord({"name": name})}), reply_to=message)

    return app


@dataclass
class Fleet:
    """Clients by number, 0 to `size` - 1, and the nodes that they are connected by.

    `names` are the names of the clients in the order of their numbers. Without them, names
    that are whole numbers (partitions) stand for themselves and others are numbered as they come.
    """

    size: int | None = None
    names: list[str] = field(default_factory=list)
    fixed: bool = False
    nodes: dict[int, int] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, clients: int | Sequence[str] | None) -> "Fleet":
        """The fleet of so many clients, or of those with these names, or of whoever comes."""
        if clients is None or isinstance(clients, int):
            return cls(size=clients)
        return cls(size=len(clients), names=[str(name) for name in clients], fixed=True)

    @property
    def known(self) -> int:
        """How many client numbers there are."""
        return max([self.size or 0, *(client + 1 for client in self.seen)])

    def name(self, client: int) -> str:
        return self.names[client] if client < len(self.names) else str(client)

    def online(self, grid: Grid) -> dict[int, int]:
        """The connected clients, each with its node; nodes that are new are asked who they are."""
        connected = sorted(grid.get_node_ids())
        new = [node for node in connected if node not in self.nodes]
        if new:
            self._ask(grid, new)
        found: dict[int, int] = {}
        for node in sorted(connected, key=list(self.nodes).index):
            if (client := self.nodes[node]) >= 0:
                found[client] = node
        self.seen |= set(found)
        return dict(sorted(found.items()))

    def gather(self, grid: Grid, seconds: float) -> dict[int, int]:
        """Wait, no longer than `seconds`, until all clients are there; without a known number, one."""
        until = time.monotonic() + seconds
        while len(list(grid.get_node_ids())) < (self.size or 1) and time.monotonic() < until:
            time.sleep(0.2)
        found = self.online(grid)
        wanted = f" of {self.size}" if self.size else ""
        log(INFO, "safari: %d%s clients are connected: %s", len(found), wanted, self._list(found))
        return found

    def never_seen(self) -> list[int]:
        return [client for client in range(self.known) if client not in self.seen]

    def _ask(self, grid: Grid, nodes: Sequence[int]) -> None:
        questions = [
            Message(RecordDict(), dst_node_id=node, message_type=f"{MessageType.QUERY}.{QUESTION}")
            for node in nodes
        ]
        answers = {}
        for reply in exchange(grid, questions, ANSWER_SECONDS).replies:
            if not reply.has_error() and ANSWER in reply.content.config_records:
                answers[reply.metadata.src_node_id] = str(reply.content[ANSWER].get("name", ""))
        for node in nodes:
            self.nodes[node] = self._number(answers.get(node, ""), node)

    def _number(self, name: str, node: int) -> int:
        """The client's number; -1 for a node that belongs to nobody known."""
        if name in self.names:
            return self.names.index(name)
        if self.fixed:
            log(WARNING, "safari: node %d calls itself %r, which is no client of this fleet", node, name)
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
