"""The Flower client: a module by itself, so that its tensors stay in memory from message to message."""

from functools import lru_cache
from pathlib import Path

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from task import Task
from torch_model import client_tensors, network
from torch_training import local_epoch

app = ClientApp()


@lru_cache(maxsize=1)
def prepared(folder: str, threads: int):
    torch.set_num_threads(threads)
    task = Task(Path(folder))
    return task, network(task), client_tensors(task)


@app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    task, net, held = prepared(config["folder"], config["threads"])
    net.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = held[context.node_config["partition-id"]]
    local_epoch(net, x, y, task)
    metrics = MetricRecord({"num-examples": len(y)})
    return Message(
        RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics}), reply_to=message
    )
