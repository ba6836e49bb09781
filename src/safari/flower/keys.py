"""Names of clients, each bound to the key of the node that had it first.

Where a SuperLink authenticates its nodes (`--enable-supernode-auth`), each key is registered beforehand, and
`flwr supernode register KEY --name NAME` gives it a name. Without authentication a node makes itself a new
key at every start, and there is nothing to bind a name to.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid


@dataclass
class Keys:
    """For each bound name the fingerprint of its key; names in `rebind` are bound anew."""

    bound: dict[str, str] = field(default_factory=dict)
    rebind: frozenset[str] = frozenset()

    def fault(self, name: str, node: NodeInfo, names: Collection[str]) -> str | None:
        """Why a node may not call itself `name`, one of the clients' `names`; None if it may.

        A registered node that may is bound to it from now on.
        """
        registered, key = node.name, fingerprint(node)
        if registered and registered in names and registered != name:
            return f"its key is registered as {registered!r}"
        if name in self.rebind and registered:
            self.rebind -= {name}
            self.bound.pop(name, None)
        bound = self.bound.get(name, key if registered else None)
        if bound is not None and bound != key:
            return f"the name is bound to key {bound}, and this is key {key or 'none'}"
        if registered:
            self.bound[name] = key
        return None


def fingerprint(node: NodeInfo) -> str:
    """The first half of a checksum of a node's public key."""
    return hashlib.sha256(node.public_key).hexdigest()[:32] if node.public_key else ""


def nodes_of(grid: Grid) -> dict[int, NodeInfo]:
    """The connected nodes and what the SuperLink knows of each."""
    return {node.node_id: node for node in grid.get_nodes()}
