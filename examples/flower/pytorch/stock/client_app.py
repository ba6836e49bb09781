"""A client: one epoch of SGD on its own samples."""

from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from torchapp.task import Net, client_loader, train

app = ClientApp()


@app.train()
def train_client(message, context):
    model, loader = Net(), client_loader(context.node_config["partition-id"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    train(model, loader)
    metrics = MetricRecord({"num-examples": len(loader.dataset)})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)
