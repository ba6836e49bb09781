"""A client pulls the model to its own number, unless it is told to misbehave."""

import time

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from safari.flower import identify

app = identify(ClientApp())


@app.train()
def train(message, context):
    client, config = int(context.node_config.get("partition-id", 8)), context.run_config
    print(f"client {client} trains", flush=True)
    arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
    arrays = {name: array + np.float32(client - array) / 2 for name, array in arrays.items()}
    if client == config["nan"]:
        arrays["w"] = np.full_like(arrays["w"], np.nan)
    if client == config["shape"]:
        arrays["w"] = np.zeros(5, np.float32)
    if client == config["sleep"]:
        time.sleep(2 * config["deadline"])
    content = {
        "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
        "metrics": MetricRecord({"num-examples": 1}),
    }
    return Message(RecordDict(content), reply_to=message)
