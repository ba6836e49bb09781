"""A grid whose nodes are ClientApps in this process: Flower's messages without its transport."""

import itertools
from collections.abc import Callable

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity


class LocalGrid(Grid):
    """`nodes` maps a node id to its node config; `app` answers for all of them."""

    def __init__(self, app: Callable[[Message, Context], Message], nodes: dict[int, dict]):
        TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
        self.app, self.nodes = app, dict(nodes)
        self.pushed: list[Message] = []
        self.replies: dict[str, Message] = {}
        self.silent: set[int] = set()
        self._numbers = itertools.count()

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        keys = []
        for message in messages:
            key = f"message-{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = key
            self.pushed.append(message)
            keys.append(key)
            if message.metadata.dst_node_id not in self.silent:
                self.replies[key] = self._answer(message, key)
        return keys

    def _answer(self, message: Message, key: str) -> Message:
        node = message.metadata.dst_node_id
        context = Context(
            run_id=1, node_id=node, node_config=self.nodes[node], state=RecordDict(), run_config={}
        )
        try:
            reply = self.app(message, context)
        except Exception as error:
            reply = Message(Error(code=2, reason=f"{type(error).__name__}: {error}"), reply_to=message)
        reply.metadata.__dict__["_reply_to_message_id"] = key
        reply.metadata.__dict__["_src_node_id"] = node
        return reply

    def pull_messages(self, message_ids):
        return [self.replies.pop(key) for key in message_ids if key in self.replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *args, **kwargs):
        raise NotImplementedError

    def trained(self) -> list[int]:
        """The nodes that were sent a training message, in order."""
        return [m.metadata.dst_node_id for m in self.pushed if m.metadata.message_type == "train"]
