"""A least-squares federation small enough to follow by hand: client i pulls the model to i."""

import numpy as np
from flwr.app import ArrayRecord, MetricRecord, RecordDict
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp

from safari.flower import identify
from safari.flower.arrays import array_record, numpy_arrays

START = {"w": np.full(3, -1, np.float32), "b": np.full(1, -1, np.float32)}
GOAL = 10.0


def start() -> ArrayRecord:
    return array_record(START)


def server_step(arrays, round):
    """Half the way to the goal."""
    return {name: array + (GOAL - array) / 2 for name, array in arrays.items()}


def pulled(arrays, client):
    return {name: array + (client - array) / 2 for name, array in arrays.items()}


def make_app(spoil=None, told=True, mods=None, extra=None) -> ClientApp:
    """`spoil(client, round, arrays, metrics)` may change what a client sends, or raise.

    `mods` are Flower's; `extra` are metrics that every client reports.
    """
    app = ClientApp(mods=mods)

    @app.train()
    def train(message, context):
        client = int(context.node_config["partition-id"])
        arrays = pulled(numpy_arrays(message.content["arrays"]), client)
        metrics = {"num-examples": 1, **(extra or {})}
        if spoil is not None:
            number = message.content["config"]["server-round"]
            arrays, metrics = spoil(client, number, arrays, metrics)
        content = {"arrays": array_record(arrays), "metrics": MetricRecord(metrics)}
        return FlowerMessage(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message, context):
        content = {
            "metrics": MetricRecord({"num-examples": 1, "loss": float(context.node_config["partition-id"])})
        }
        return FlowerMessage(RecordDict(content), reply_to=message)

    return identify(app) if told else app


def nodes(count: int, shift: int = 0) -> dict[int, dict]:
    """Node ids that say nothing of the clients' order."""
    return {(7919 * (client + 1) + shift) % 10007 + 1: {"partition-id": client} for client in range(count)}
