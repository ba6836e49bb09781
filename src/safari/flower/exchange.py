"""Sending messages and collecting replies, no longer than a deadline."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
ROLL_CALL_SECONDS = 2.0


@dataclass(frozen=True)
class Exchange:
    """What came back in time, who failed and why, who left before answering, and who was late.

    `seconds` says after how long each node answered. The server looks for replies every half second at
    the least. Flower answers for nodes that are `gone`: it has not heard from them for a while.
    """

    replies: list[Message]
    failed: list[tuple[int, str]]
    left: list[int]
    late: list[int]
    seconds: dict[int, float] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)


def exchange(grid: Grid, messages: Iterable[Message], seconds: float) -> Exchange:
    """Send `messages`; wait for the replies until the deadline, or until nobody is left to answer."""
    messages = list(messages)
    if not messages:
        return Exchange([], [], [], [])
    began = time.monotonic()
    for message in messages:
        message.metadata.ttl = max(seconds, 1.0)
    nodes = [message.metadata.dst_node_id for message in messages]
    keys = [*grid.push_messages(messages), *[None] * len(nodes)]
    open_ = {key: node for key, node in zip(keys, nodes, strict=False) if key}
    left = [node for key, node in zip(keys, nodes, strict=False) if not key]
    replies: list[Message] = []
    failed: list[tuple[int, str]] = []
    took: dict[int, float] = {}
    gone: list[int] = []
    pause, roll_call = FIRST_PAUSE, began + ROLL_CALL_SECONDS
    while open_ and (now := time.monotonic()) < began + seconds:
        for reply in grid.pull_messages(list(open_)):
            node = open_.pop(reply.metadata.reply_to_message_id, None)
            if node is None:
                continue
            took[node] = time.monotonic() - began
            if reply.has_error():
                failed.append((node, reply.error.reason or ""))
                gone += [node] * (reply.error.code == ErrorCode.NODE_UNAVAILABLE)
            else:
                replies.append(reply)
        if now > roll_call:
            there, roll_call = set(grid.get_node_ids()), now + ROLL_CALL_SECONDS
            left += [node for node in open_.values() if node not in there]
            open_ = {key: node for key, node in open_.items() if node in there}
        if open_:
            time.sleep(min(pause, max(began + seconds - time.monotonic(), 0)))
            pause = min(pause * 1.5, LONGEST_PAUSE)
    return Exchange(replies, failed, left, list(open_.values()), took, gone)


class Only(Grid):
    """A grid that shows some of its nodes: a strategy that samples from it gets just those."""

    def __init__(self, grid: Grid, nodes: Sequence[int]):
        self._grid, self._nodes = grid, list(nodes)

    def get_node_ids(self) -> Iterable[int]:
        return list(self._nodes)

    def set_run(self, run: Any) -> None:
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        return self._grid.run

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        return self._grid.create_message(*args, **kwargs)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        return self._grid.send_and_receive(messages, timeout=timeout)


def one_line(reason: str | None, most: int = 200) -> str:
    """The last words of an error, which say most of it."""
    lines = [line.strip() for line in (reason or "").splitlines() if line.strip()]
    return lines[-1][:most] if lines else "no reason given"


def bytes_of(messages: Iterable[Message]) -> int:
    """The bytes of all arrays in `messages`."""
    return sum(
        len(array.data)
        for message in messages
        if not message.has_error()
        for record in message.content.array_records.values()
        for array in record.values()
    )
